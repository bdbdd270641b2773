"""Checkpoints to resume from: ``checkpoints/step-00010/`` with the optimizer's tensors and a small JSON."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from rstar2cli.core.errors import DataError
from rstar2cli.policy.checkpoint import replacing_directory

_NAME = re.compile(r"step-(\d{5,})")


@dataclass(kw_only=True)
class TrainState:
    """Everything that decides how training goes on after a step."""

    step: int
    """Steps done."""
    tensors: dict[str, Tensor]
    """Masters, moments and the generator of torch."""
    caller: dict[str, Any] = field(default_factory=dict)
    """What the stage keeps: position in the data and the like, JSON-ready."""
    base: str = ""
    """Digest of the model that training started from."""


def save_state(directory: Path, state: TrainState, *, keep: int) -> Path:
    """Write ``directory/step-NNNNN`` in one rename, then remove all but the newest ``keep``.

    Raises ``EnvironmentMissing`` for a full disk, ``OutputConflict`` for other refusals.
    """
    target = directory / f"step-{state.step:05d}"
    with replacing_directory(target) as temporary:
        save_file(
            {name: tensor.contiguous() for name, tensor in state.tensors.items()}, temporary / "state.safetensors"
        )
        note = {"step": state.step, "base": state.base, "caller": state.caller}
        (temporary / "state.json").write_text(json.dumps(note, indent=1) + "\n", encoding="utf-8")
    for old in _steps(directory)[:-keep]:
        shutil.rmtree(old)
    return target


def newest_state(directory: Path) -> TrainState | None:
    """The newest checkpoint, or None. Raises ``DataError`` if it can't be read."""
    steps = _steps(directory)
    if not steps:
        return None
    try:
        note = json.loads((steps[-1] / "state.json").read_text(encoding="utf-8"))
        tensors = load_file(steps[-1] / "state.safetensors")
        return TrainState(step=note["step"], tensors=tensors, caller=note["caller"], base=note["base"])
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise DataError(
            f"{steps[-1]}: the checkpoint can't be read: {error}",
            hint="remove it to go on from the one before, or start again with --overwrite",
        ) from error


def _steps(directory: Path) -> list[Path]:
    if not directory.is_dir():
        return []
    found = [child for child in directory.iterdir() if _NAME.fullmatch(child.name)]
    return sorted(found, key=lambda child: int(child.name.removeprefix("step-")))
