"""One number of a run's history."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from rstar2cli.records.base import Json, Record


class Metric(Record, kw_only=True, tag="metric/1"):
    """Value of a named metric at one step."""

    record_name: ClassVar[str] = "metric"
    record_version: ClassVar[int] = 1

    run: str
    """Name of the run."""
    step: int
    """Optimizer step, from 1."""
    name: str
    """Name with its unit where it has one: `reward`, `loss`, `tokens_per_s`."""
    value: float
    """The value."""
    extra: Json = msgspec.field(default_factory=dict)
    """Anything else."""
