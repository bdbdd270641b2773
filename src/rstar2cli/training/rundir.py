"""A run directory: who may write it, what marks it, and what a resume must find unchanged."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rstar2cli.core.errors import InputMissing, OutputConflict, Stopped
from rstar2cli.core.process import ranks
from rstar2cli.shards.aside import Aside, aside_of
from rstar2cli.shards.atomic import output_error, telling, write_bytes
from rstar2cli.shards.lock import LOCK, OutputLock, is_leftover
from rstar2cli.shards.manifest import REJECTS
from rstar2cli.shards.rejects import Reject, encode_reject
from rstar2cli.shards.writer import check_resumed

_MARK, _CONFIG = "run.json", "config.json"
MODEL, CHECKPOINTS, METRICS = "model", "checkpoints", "metrics.jsonl"
ROLLOUTS, SELECTIONS = "rollouts", "selections"
_BEGINNING = (_MARK, _CONFIG, REJECTS, METRICS)
_OWN = (*_BEGINNING, MODEL, CHECKPOINTS, ROLLOUTS, SELECTIONS)
"""Entries that a run makes; all but the first four hold what it can go on from."""
_FREE = ("save_every", "keep", "device", "processes", "micro_tokens", "recompute", "head_chunk")
"""Keys that may change on a resume: they do not change what is computed (up to rounding)."""


@contextlib.contextmanager
def open_run(
    out: str | Path, *, stage: str, config: Mapping[str, Any], resume: bool = False, overwrite: bool = False
) -> Iterator[Path]:
    """The directory of a run, locked while it is written; ``run.json`` and ``config.json`` are in it.

    What ``overwrite`` replaces is set aside, gone when the run is done, and back in its place if the run ends before
    it has saved anything.
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
        aside = Aside(path)
        aside.mend()
        if aside.held and (path / _MARK).exists() and is_done(path):
            aside.drop()  # killed just after it was done
        if resume:
            _same_run(path, stage, config)
        else:
            aside.take(_OWN)
            # Killed anywhere from here on, this is a run directory that --overwrite replaces, by its mark or by what
            # is aside. Without the configuration, which comes last, no --resume takes it.
            mark = {"kind": "run/1", "stage": stage, "run": run_name(path), "default": METRICS, "model": MODEL}
            write_bytes(path / _MARK, _json(mark))
            write_bytes(path / _CONFIG, _json(config))
        try:
            yield path
        except Stopped as stop:
            stop.resumable = stop.resumable and (_saved(path) or not aside.held)
            raise
        finally:
            _settle(path, aside)
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
    with telling(out):
        _check_free(Path(out), stage, resume, overwrite)


def _check_free(path: Path, stage: str, resume: bool, overwrite: bool) -> None:
    if path.exists() and not path.is_dir():
        raise OutputConflict(f"{path}: is a file; {stage} writes a run directory")
    marked = any((place / _MARK).exists() for place in (path, *aside_of(path)))
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


def _settle(path: Path, aside: Aside) -> None:
    """At the end of a run: the old output goes if the new one is whole, and comes back if that has nothing."""
    if not aside.held:
        return
    if is_done(path):
        aside.drop()
    elif not _saved(path):
        aside.put_back(_OWN)


def _saved(path: Path) -> bool:
    """Whether a run has anything to go on from: a file in one of its directories."""
    return any(item.is_file() for name in _OWN if name not in _BEGINNING for item in (path / name).rglob("*"))


def _same_run(path: Path, stage: str, config: Mapping[str, Any]) -> None:
    if not (path / _MARK).exists():
        raise InputMissing(
            f"{path}: no run to resume: it was stopped while it replaced another", hint="begin anew with --overwrite"
        )
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
