"""Which directories, and which entries of them, are a shard writer's: nothing else is ever replaced."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from rstar2cli.shards.aside import aside_of
from rstar2cli.shards.manifest import CONFIG, JOURNAL, KIND, MANIFEST, REJECTS

_PART = re.compile(r"part-\d{5,}\.parquet")
_TRAJECTORIES, _RESULT = "trajectories", "result.json"
"""What ``eval`` keeps beside its scores."""


def is_shard_directory(path: Path) -> bool:
    """Whether a shard writer made or began this directory, or was killed while it replaced one."""
    return any(map(_marked, (path, *aside_of(path))))


def owned(path: Path) -> list[str]:
    """The entries of a shard directory that its writer made."""
    names = [name for name in (MANIFEST, JOURNAL, CONFIG, REJECTS) if (path / name).exists()]
    names += sorted(item.name for item in path.iterdir() if is_part(item.name))
    if is_shard_directory(path / _TRAJECTORIES):
        names += [name for name in (_TRAJECTORIES, _RESULT) if (path / name).exists()]
    return names


def is_part(name: str) -> bool:
    """Whether a file name is one that writers give to parts."""
    return _PART.fullmatch(name) is not None


def begun_by_stage(path: Path) -> bool:
    """Whether its ``config.json`` is one that a stage wrote; models and data sets of others have one too."""
    return "stage" in _object(path / CONFIG)


def _marked(path: Path) -> bool:
    if (path / "run.json").exists():
        return False
    return (path / JOURNAL).exists() or begun_by_stage(path) or _object(path / MANIFEST).get("kind") == KIND


def _object(path: Path) -> dict[str, Any]:
    """The JSON object in a file; an empty one if there is none."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError):
        return {}
