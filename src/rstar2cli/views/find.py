"""Finding the one record that ``show`` is asked for, and what lies beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rstar2cli.core.errors import InputMissing, UsageError
from rstar2cli.records import Record, Score, Selection, Trajectory
from rstar2cli.shards.kinds import detect
from rstar2cli.shards.reader import read_records

_LISTED = 5


def readable(source: str) -> str:
    """What ``show`` reads for a name: a training run stands for its rollouts, if it has any."""
    path = Path(source)
    if (path / "run.json").exists() and (path / "rollouts").is_dir():
        return str(path / "rollouts")
    return source


def find_record(source: str, wanted: str | None) -> Record:
    """The record with this id, with an id that begins so, or with this row number (from 1); else the first.

    An exact id wins over a row number, a row number over the beginning of an id. Scores are
    found by their problem too. Raises ``InputMissing`` if there is none, ``UsageError`` if
    several ids begin so.
    """
    number = int(wanted) if wanted is not None and wanted.isdecimal() else None
    by_number: Record | None = None
    by_prefix: dict[str, Record] = {}
    rows = 0
    for rows, record in enumerate(_records(source), 1):
        if wanted is None or wanted in _names(record):
            return record
        if rows == number:
            by_number = record
        name = next((name for name in _names(record) if name.startswith(wanted)), None)
        if name is not None and len(by_prefix) <= _LISTED:
            by_prefix.setdefault(name, record)
    if by_number is not None:
        return by_number
    if len(by_prefix) > 1:
        names = list(by_prefix)
        more = ", …" if len(names) > _LISTED else ""
        raise UsageError(f"{source}: several ids begin with {wanted!r}: {', '.join(names[:_LISTED])}{more}")
    if not by_prefix:
        what = "no records" if wanted is None else f"no record with id {wanted!r} among {rows}"
        raise InputMissing(f"{source}: {what}", hint=f"list the records with: rstar2 head {source}")
    return next(iter(by_prefix.values()))


def trajectory_of(source: str, score: Score) -> Trajectory | None:
    """The trajectory that was scored, from ``trajectories`` beside the scores; null if it is not there."""
    beside = Path(source) / "trajectories"
    if score.trajectory_id is None or not beside.is_dir():
        return None
    records = read_records([str(beside)], Trajectory, where=f"id = {_quote(score.trajectory_id)}", limit=1)
    return next(records, None)


def selection_of(source: str, trajectory: Trajectory) -> Selection | None:
    """What RoC decided about a trajectory of a training run; null where no selection lies beside.

    ``source`` is RUN, RUN/rollouts, a step's directory in it, or a part of one.
    """
    path = Path(source).absolute()
    for run in (path, *path.parents[:3]):
        step = run / "selections" / f"step-{trajectory.step:05d}"
        if step.is_dir():
            where = f"id = {_quote(trajectory.id)}"
            return next(read_records([str(step)], Selection, where=where, limit=1), None)
    return None


def _records(source: str) -> Iterator[Record]:
    return read_records([source], detect([source]))


def _names(record: Record) -> tuple[str, ...]:
    if isinstance(record, Score):
        return (record.trajectory_id or "", record.problem_id)
    if isinstance(record, Trajectory):
        return (record.id, record.problem_id)
    name = getattr(record, "id", None)
    return (name,) if isinstance(name, str) else ()


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
