"""What changed between evaluations: configuration, scores, flipped problems, paired tests."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rstar2cli.core.config import flatten
from rstar2cli.core.errors import DataError, InputMissing, UsageError
from rstar2cli.records import Record, Score, Trajectory
from rstar2cli.shards.atomic import write_bytes
from rstar2cli.shards.kinds import detect
from rstar2cli.shards.manifest import read_manifest
from rstar2cli.shards.reader import read_records
from rstar2cli.stats.bootstrap import paired_interval
from rstar2cli.stats.paired import mcnemar
from rstar2cli.stats.scores import METRIC, Key, problem_means, score_of, summarize
from rstar2cli.views.tables import json_line

_ABSENT = object()


@dataclass(frozen=True, kw_only=True)
class Side:
    """One of the things compared."""

    label: str
    """Name in the tables."""
    source: str
    """Where it was read."""
    scores: list[Score]
    """Its scores, of one metric."""
    config: dict[str, Any]
    """Dotted key → value of its resolved configuration; empty if none lies beside."""
    seconds: float | None
    """Wall time of the evaluation; null if it was not recorded."""


def read_side(label: str, source: str, *, metric: str = METRIC) -> Side:
    """Scores, or trajectories taken as scores, with the configuration beside them.

    Raises ``UsageError`` for records of another kind, ``InputMissing`` if there are no scores of the metric.
    """
    cls: type[Record] = detect([source])
    if cls is Trajectory:
        scores = [score_of(record, record.source) for record in read_records([source], Trajectory)]
    elif cls is Score:
        every = list(read_records([source], Score))
        scores = [score for score in every if score.metric == metric]
        if not scores:
            names = ", ".join(sorted({score.metric for score in every}))
            raise InputMissing(f"{source}: no scores of metric {metric!r}", hint=f"it has: {names}")
    else:
        raise UsageError(
            f"{source}: diff compares scores or trajectories, not {cls.record_name} records",
            hint="give what rstar2 eval or rstar2 rollout wrote",
        )
    return Side(label=label, source=source, scores=scores, config=_config(source), seconds=_seconds(source))


def compare(sides: Sequence[Side], *, on: Sequence[str] = ("problem_id",), seed: int = 0) -> dict[str, Any]:
    """The comparison as JSON-ready values.

    ``runs``: the figures of each side; ``pairs``: each side against the one before it, over the
    problems (rows with the same values of the fields ``on``) that both have; ``configuration``:
    the keys whose values differ. Raises ``UsageError`` for unknown fields, ``DataError`` if two
    neighbours have no problem in common.
    """
    key = _key(on)
    runs = []
    for side in sides:
        figures = dataclasses.asdict(summarize(side.scores, key, seed=seed))
        runs.append({"label": side.label, "source": side.source, **figures, "seconds": side.seconds})
    pairs = [_pair(before, after, key, on, seed) for before, after in itertools.pairwise(sides)]
    return {"kind": "comparison/1", "on": list(on), "runs": runs, "pairs": pairs, "configuration": _changes(sides)}


def write_comparison(comparison: dict[str, Any], path: str) -> None:
    """The comparison as a JSON file, whole or not at all. Raises ``OutputConflict`` where it can't be written."""
    text = json_line(comparison, indent=2)
    write_bytes(Path(path), text.encode())


def _pair(before: Side, after: Side, key: Key, on: Sequence[str], seed: int) -> dict[str, Any]:
    a, b = problem_means(before.scores, key), problem_means(after.scores, key)
    common = [problem for problem in a if problem in b]
    if not common:
        raise DataError(
            f"{before.label} and {after.label} have no {', '.join(on)} in common",
            hint="compare evaluations of the same problems, or join them on another field with --on",
        )
    interval = paired_interval(a, b, seed=seed)
    gained = [problem for problem in common if b[problem] > a[problem]]
    lost = [problem for problem in common if b[problem] < a[problem]]
    # With one sample a problem this is McNemar's test; with more, the sign test on the problems' means.
    test = mcnemar([a[problem] > b[problem] for problem in common], [b[problem] > a[problem] for problem in common])
    return {
        "from": before.label,
        "to": after.label,
        "problems": len(common),
        "only_from": len(a) - len(common),
        "only_to": len(b) - len(common),
        "difference": interval.mean,
        "low": interval.low,
        "high": interval.high,
        "excludes_zero": interval.excludes_zero,
        "p_mcnemar": test.p,
        "gained": [_name(problem) for problem in gained],
        "lost": [_name(problem) for problem in lost],
    }


def _key(on: Sequence[str]) -> Key:
    unknown = [name for name in on if name not in Score.__struct_fields__]
    if unknown or not on:
        fields = ", ".join(Score.__struct_fields__)
        raise UsageError(f"--on: unknown field {', '.join(unknown) or '(none given)'}", hint=f"fields: {fields}")

    def key(score: Score) -> Hashable:
        return tuple(str(getattr(score, name)) for name in on)

    return key


def _name(problem: Hashable) -> str:
    assert isinstance(problem, tuple)
    return " ".join(problem)


def _changes(sides: Sequence[Side]) -> list[dict[str, Any]]:
    """Keys whose values are not the same in all sides that have a configuration at all."""
    known = [side for side in sides if side.config]
    keys = dict.fromkeys(key for side in known for key in side.config)
    changes = []
    for key in keys:
        values = [side.config.get(key, _ABSENT) for side in known]
        if any(value != values[0] for value in values):
            shown = {side.label: side.config[key] for side in known if key in side.config}
            changes.append({"key": key, "values": shown})
    return changes


def _config(source: str) -> dict[str, Any]:
    """The flattened ``config.json`` of a directory, and the digest of the model from its lineage."""
    path = Path(source)
    flat: dict[str, Any] = {}
    if (path / "config.json").is_file():
        flat = flatten(_read_json(path / "config.json"))
    manifest = read_manifest(path) if path.is_dir() else None
    if manifest is not None and manifest.lineage.model:
        flat["model_digest"] = manifest.lineage.model
    return flat


def _seconds(source: str) -> float | None:
    path = Path(source) / "result.json"
    if not path.is_file():
        return None
    seconds = _read_json(path).get("seconds")
    return float(seconds) if isinstance(seconds, int | float) else None


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: can't be read as JSON: {error}") from error
    if not isinstance(value, dict):
        raise DataError(f"{path}: not a JSON object")
    return value
