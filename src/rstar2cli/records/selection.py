"""What GRPO-RoC decided about a trajectory."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from rstar2cli.records.base import Json, Record


class Selection(Record, kw_only=True, tag="selection/1"):
    """Written by train-rl beside the trajectories, one row each."""

    record_name: ClassVar[str] = "selection"
    record_version: ClassVar[int] = 1

    id: str
    """Id of the trajectory."""
    group: str
    """Its group, `run:step:slot`."""
    kept: bool
    """Whether it was trained on."""
    advantage: float | None
    """Advantage over the kept rollouts of its group; null if not kept."""
    why: str
    """`kept`, `not_drawn`, `equal_rewards`, `group_too_small`, `undecided`, `lost`."""
    extra: Json = msgspec.field(default_factory=dict)
    """Anything else."""
