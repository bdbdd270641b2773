"""A run directory: who may write it, what marks it, and what a resume must find unchanged."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rstar2cli.core.errors import InputMissing, OutputConflict
from rstar2cli.core.process import ranks
from rstar2cli.shards.atomic import output_error, write_bytes
from rstar2cli.shards.lock import LOCK, OutputLock, is_leftover
from rstar2cli.shards.manifest import REJECTS
from rstar2cli.shards.rejects import Reject, encode_reject
from rstar2cli.shards.writer import check_resumed

_MARK, _CONFIG = "run.json", "config.json"
MODEL = "model"
CHECKPOINTS = "checkpoints"
_FREE = ("save_every", "keep", "device", "processes", "micro_tokens", "recompute", "head_chunk")
"""Keys that may change on a resume: they do not change what is computed (up to rounding)."""


@contextlib.contextmanager
def open_run(
    out: str | Path, *, stage: str, config: Mapping[str, Any], resume: bool = False, overwrite: bool = False
) -> Iterator[Path]:
    """The directory of a run, locked while it is written; ``run.json`` and ``config.json`` are in it.

    Raises ``OutputConflict`` if it exists without ``resume`` or ``overwrite``, is another stage's, locked or was begun
    with another configuration; ``InputMissing`` if there is nothing to resume.
    Of several processes the first one alone does all this; the others get past the trainer's construction only
    when it did.
    """
    path = Path(out)
    if not ranks().main:
        yield path
        return
    check_out(path, stage=stage, resume=resume, overwrite=overwrite)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise output_error(path, error) from error
    lock = OutputLock(path / LOCK, str(path))
    try:
        if resume:
            _same_run(path, stage, config)
        else:
            mark = {"kind": "run/1", "stage": stage, "run": run_name(path), "default": "metrics.jsonl", "model": MODEL}
            # The mark first: killed anywhere from here on, this is a run directory that --overwrite replaces.
            # The configuration last: without it, what is there may be a mixture, and no --resume takes it.
            write_bytes(path / _MARK, _json(mark))
            _clear(path)
            write_bytes(path / _CONFIG, _json(config))
        yield path
    finally:
        lock.release()


def write_rejects(path: Path, rejects: Sequence[Reject]) -> None:
    """Keep the input rows that were left out of a run; by the first process alone."""
    if rejects and ranks().main:
        write_bytes(path / REJECTS, b"".join(map(encode_reject, rejects)))


def check_out(out: str | Path, *, stage: str, resume: bool, overwrite: bool) -> None:
    """Raise what :func:`open_run` would, without touching anything: to be asked before long work."""
    if not ranks().main:
        return
    path = Path(out)
    if path.exists() and not path.is_dir():
        raise OutputConflict(f"{path}: is a file; {stage} writes a run directory")
    marked = (path / _MARK).exists()
    if resume and not marked:
        raise InputMissing(f"{path}: no run to resume", hint="leave --resume out to start one")
    if path.exists() and not resume and not all(is_leftover(child.name) for child in path.iterdir()):
        _refuse_unless(overwrite and marked, path, overwrite)


def run_name(path: str | Path) -> str:
    """Name of a run: that of its directory."""
    return Path(path).resolve().name


def is_done(path: Path) -> bool:
    """Whether the run has written its model and needs no resume."""
    return bool(json.loads((path / _MARK).read_text(encoding="utf-8")).get("done"))


def mark_done(path: Path) -> None:
    """Note in ``run.json`` that the run is complete."""
    mark = json.loads((path / _MARK).read_text(encoding="utf-8"))
    write_bytes(path / _MARK, _json({**mark, "done": True}))


def _refuse_unless(allowed: bool, path: Path, overwrite: bool) -> None:
    if allowed:
        return
    if overwrite:
        raise OutputConflict(
            f"{path}: not a run directory, so it is not replaced", hint="choose another OUT, or empty it"
        )
    raise OutputConflict(
        f"{path}: exists", hint="go on with --resume, replace it with --overwrite, or choose another OUT"
    )


def _clear(path: Path) -> None:
    """Remove all but mark and lock, the configuration before the rest."""
    (path / _CONFIG).unlink(missing_ok=True)
    for child in path.iterdir():
        if child.name in (LOCK, _MARK):
            continue
        if child.is_dir():
            shutil.rmtree(child)
        else:
            child.unlink()


def _same_run(path: Path, stage: str, config: Mapping[str, Any]) -> None:
    mark = json.loads((path / _MARK).read_text(encoding="utf-8"))
    if mark.get("stage") != stage:
        raise OutputConflict(f"{path}: a run of {mark.get('stage')}, not of {stage}")
    if not (path / _CONFIG).exists():
        raise OutputConflict(
            f"{path}: no {_CONFIG}: the run was stopped while it was being set up",
            hint="begin anew with --overwrite",
        )
    before = json.loads((path / _CONFIG).read_text(encoding="utf-8"))
    check_resumed(path, before, json.loads(_json(config)), free=_FREE)


def _json(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode()
