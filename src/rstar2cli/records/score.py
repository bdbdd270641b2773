"""One graded answer of an evaluation."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from rstar2cli.records.base import Json, Record
from rstar2cli.records.trajectory import Verdict


class Score(Record, kw_only=True, tag="score/1"):
    """Value of one metric for one sample of one problem."""

    record_name: ClassVar[str] = "score"
    record_version: ClassVar[int] = 1

    benchmark: str
    """Name of the benchmark or problem set."""
    problem_id: str
    """Id of the problem."""
    sample: int
    """Number of the sample."""
    metric: str
    """What is measured: `correct` for verifiable answers."""
    value: float | None
    """Value of the metric; for `correct` 1 or 0; null if it could not be measured."""
    verdict: Verdict | None = None
    """Verdict of the grading; null for metrics without one."""
    detail: Json = msgspec.field(default_factory=dict)
    """Further figures of the same sample: tokens, turns, tool calls and errors, seconds."""
    trajectory_id: str | None = None
    """Trajectory that was scored; null if none was kept."""
    extra: Json = msgspec.field(default_factory=dict)
    """Anything else."""

    volatile: ClassVar[tuple[str, ...]] = ("detail.seconds",)
