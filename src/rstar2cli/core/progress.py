"""How rooms report progress: a callback, never a print."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Progress:
    """One report: how far a named piece of work has come."""

    task: str
    """What is being done, as the user reads it ("rollout", "sft", "eval")."""
    done: int
    """Units finished so far."""
    total: int | None = None
    """Units in all; null when unknown."""
    unit: str = "rows"
    """What is counted."""
    detail: bool = False
    """A piece of work that reports of its own: worth telling only while it takes long."""
    landmark: bool = False
    """Rare enough that each is worth telling."""
    info: dict[str, float | int | str] = field(default_factory=dict)
    """Latest figures worth a glance (loss, reward, tokens/s)."""


ProgressFn = Callable[[Progress], None]


def silent(_: Progress) -> None:
    """The callback for callers that do not listen."""
