"""New weights for a running engine, by checkpoint name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import torch
from safetensors import safe_open

from rstar2cli.core.errors import DataError

HEAD = "lm_head.weight"
EMBEDDING = "model.embed_tokens.weight"

Shapes = Mapping[str, tuple[int, ...]]


def checked(weights: Iterable[tuple[str, torch.Tensor]], shapes: Shapes) -> dict[str, torch.Tensor]:
    """The weights by name, if they are exactly those of ``shapes``.

    Where ``shapes`` has no head the model is tied: a head that is named is left out, and its
    embedding decides. Raises ``DataError`` naming unknown, missing and misshapen weights.
    """
    given: dict[str, torch.Tensor] = {}
    problems: list[str] = []
    for name, tensor in weights:
        if name == HEAD and HEAD not in shapes:
            continue
        if name not in shapes:
            problems.append(f"unknown weight {name}")
        elif shapes[name] != tuple(tensor.shape):
            problems.append(f"{name}: shape {tuple(tensor.shape)} instead of {shapes[name]}")
        given[name] = tensor
    problems += [f"missing weight {name}" for name in shapes if name not in given]
    if problems:
        shown = "; ".join(problems[:5]) + (f"; and {len(problems) - 5} more" if len(problems) > 5 else "")
        raise DataError(f"weights do not fit the loaded model: {shown}", hint="send a checkpoint of the same model")
    return given


def write(parameters: Mapping[str, torch.Tensor], weights: Iterable[tuple[str, torch.Tensor]]) -> None:
    """Copy every weight into the parameter of its name; nothing is written unless all fit (:func:`checked`)."""
    shapes = {name: tuple(parameter.shape) for name, parameter in parameters.items()}
    for name, tensor in checked(weights, shapes).items():
        parameters[name].copy_(tensor)


def checkpoint_shapes(directory: Path, *, tied: bool) -> dict[str, tuple[int, ...]]:
    """Names and shapes in a checkpoint's safetensors files, without the head of a ``tied`` model."""
    shapes: dict[str, tuple[int, ...]] = {}
    for file in sorted(directory.glob("*.safetensors")):
        with safe_open(file, framework="pt") as opened:
            for name in opened.keys():  # noqa: SIM118 - not a mapping
                shapes[name] = tuple(opened.get_slice(name).get_shape())
    if tied:
        shapes.pop(HEAD, None)
    return shapes
