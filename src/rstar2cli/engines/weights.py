"""Writing new weights into a running decoder, by checkpoint name."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from rstar2cli.core.errors import DataError

HEAD = "lm_head.weight"
EMBEDDING = "model.embed_tokens.weight"


def write(parameters: dict[str, torch.Tensor], weights: Iterable[tuple[str, torch.Tensor]]) -> None:
    """Copy every weight into the parameter of its name.

    A tied head has no parameter of its own: if it is named it is left out, and its embedding
    decides. Raises ``DataError`` on unknown or missing names and on wrong shapes, before
    anything is written.
    """
    given: dict[str, torch.Tensor] = {}
    problems: list[str] = []
    for name, tensor in weights:
        if name == HEAD and HEAD not in parameters:
            continue
        target = parameters.get(name)
        if target is None:
            problems.append(f"unknown weight {name}")
        elif target.shape != tensor.shape:
            problems.append(f"{name}: shape {tuple(tensor.shape)} instead of {tuple(target.shape)}")
        given[name] = tensor
    problems += [f"missing weight {name}" for name in parameters if name not in given]
    if problems:
        shown = "; ".join(problems[:5]) + ("; …" if len(problems) > 5 else "")
        raise DataError(f"weights do not fit the loaded model: {shown}", hint="send a checkpoint of the same model")
    for name, tensor in given.items():
        parameters[name].copy_(tensor)
