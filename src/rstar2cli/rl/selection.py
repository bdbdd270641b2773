"""From a step's trajectories to what is trained on: groups, RoC, advantages, and a record of every decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from rstar2cli.core.seeds import generator
from rstar2cli.records import Selection, Trajectory
from rstar2cli.rl.advantage import advantages
from rstar2cli.rl.config import LossConfig, RocConfig
from rstar2cli.rl.roc import GroupSelection, p_total, select_group


@dataclass(frozen=True, kw_only=True)
class Kept:
    """One trajectory that is trained on."""

    trajectory: Trajectory
    """The trajectory itself."""
    group: int
    """Its group's place among the kept groups of the step."""
    advantage: float
    """Advantage of each of its tokens."""


@dataclass(kw_only=True)
class StepSelection:
    """Everything that was decided about one step."""

    kept: list[Kept] = field(default_factory=list)
    """Trained on, by slot and sample."""
    records: list[Selection] = field(default_factory=list)
    """One per trajectory, by slot and sample."""
    dropped: Counter[str] = field(default_factory=Counter)
    """Groups dropped, by reason."""
    why: Counter[str] = field(default_factory=Counter)
    """Trajectories, by the word of their record."""
    groups: int = 0
    """Groups seen."""
    faults: int = 0
    """Groups in which the released quotas miscounted."""

    @property
    def kept_groups(self) -> int:
        """Groups that are trained on."""
        return self.groups - self.dropped.total()


def select_step(trajectories: Sequence[Trajectory], roc: RocConfig, loss: LossConfig, seed: int) -> StepSelection:
    """Choose within each group, in order of slot and sample whatever order the trajectories came in.

    Each group draws from a generator of its own, keyed by (``seed``, "roc", group).
    """
    groups: dict[tuple[int, int, str], list[Trajectory]] = {}
    for trajectory in trajectories:
        groups.setdefault((trajectory.step, trajectory.slot, trajectory.run), []).append(trajectory)
    result = StepSelection()
    for key in sorted(groups):
        _add_group(result, sorted(groups[key], key=lambda trajectory: trajectory.sample), roc, loss, seed)
    return result


def _add_group(result: StepSelection, members: list[Trajectory], roc: RocConfig, loss: LossConfig, seed: int) -> None:
    group = members[0].group
    chosen = select_group(
        [member.reward for member in members],
        [p_total(member.p_err, member.p_format, roc) for member in members],
        roc,
        generator(seed, "roc", group),
        lost=[member.finish == "lost" for member in members],
    )
    values = advantages([_reward(members[place]) for place in chosen.kept], loss.advantage)
    by_place = dict(zip(chosen.kept, values, strict=True))
    number = result.kept_groups
    result.groups += 1
    _count(result, chosen)
    for place, member in enumerate(members):
        advantage = by_place.get(place)
        if advantage is not None:
            result.kept.append(Kept(trajectory=member, group=number, advantage=advantage))
        result.records.append(
            Selection(id=member.id, group=group, kept=advantage is not None, advantage=advantage, why=chosen.why[place])
        )


def _count(result: StepSelection, chosen: GroupSelection) -> None:
    if chosen.dropped is not None:
        result.dropped[chosen.dropped] += 1
    result.why.update(chosen.why)
    result.faults += chosen.fault is not None


def _reward(trajectory: Trajectory) -> float:
    assert trajectory.reward is not None, trajectory.id  # RoC keeps usable ones alone
    return trajectory.reward
