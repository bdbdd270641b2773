"""Resample on correct (RoC): keep half of a group, every kind of failure but mostly clean successes.

Pure functions of rewards, ``p_total`` and a generator. The rules are those of the
report (arXiv 2508.20722), section on GRPO-RoC, and of the released code
(microsoft/rStar at ecbfb94); where the report leaves p_total = 0 open, epsilon decides.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rstar2cli.rl.config import RocConfig

Why = Literal["kept", "not_drawn", "equal_rewards", "group_too_small", "undecided", "lost"]
Dropped = Literal["group_too_small", "equal_rewards", "equal_after_selection"]


@dataclass(frozen=True, kw_only=True)
class GroupSelection:
    """What became of a group."""

    kept: list[int]
    """Places of the kept rollouts, ascending; empty if the group was dropped."""
    why: list[Why]
    """One word per rollout."""
    dropped: Dropped | None
    """Why the whole group was dropped; null if it was not."""
    fault: str | None = None
    """`released`: its rounding kept another number than it meant to."""


def p_total(p_err: float, p_format: float, config: RocConfig) -> float:
    """The penalty of a rollout: share of failed calls plus format penalty, as far as each is switched on."""
    return (p_err if config.p_err else 0.0) + (p_format if config.p_format else 0.0)


def select_group(
    rewards: Sequence[float | None],
    p_totals: Sequence[float],
    config: RocConfig,
    rng: random.Random,
    *,
    lost: Sequence[bool] | None = None,
) -> GroupSelection:
    """Choose which rollouts of one group are trained on.

    ``rewards`` and ``p_totals`` have one entry per rollout in order of their sample number; a null
    reward is not usable (undecided, or lost where ``lost`` says so) and leaves before any quota.
    A reward above 0 is a positive. The same inputs and generator state give the same answer.
    """
    why: list[Why] = ["not_drawn"] * len(rewards)
    for place, reward in enumerate(rewards):
        if lost is not None and lost[place]:
            why[place] = "lost"
        elif reward is None:
            why[place] = "undecided"
    usable = [place for place, word in enumerate(why) if word == "not_drawn"]
    target = len(usable) if config.mode == "none" else len(usable) // 2
    if target < 2:
        return _drop(why, usable, "group_too_small", "group_too_small")
    if _equal(rewards, usable):
        return _drop(why, usable, "equal_rewards", "equal_rewards")
    chosen = _choose(rewards, p_totals, usable, target, config, rng)
    fault = None
    if config.mode == "released" and len(chosen) != target:
        fault = f"released quotas keep {len(chosen)} of {len(usable)} rollouts, not {target}"
    if len(chosen) < 2:
        return _drop(why, chosen, "group_too_small", "group_too_small")
    if _equal(rewards, chosen):
        return _drop(why, chosen, "equal_rewards", "equal_after_selection")
    for place in chosen:
        why[place] = "kept"
    return GroupSelection(kept=sorted(chosen), why=why, dropped=None, fault=fault)


def paper_quotas(positives: int, negatives: int, target: int, *, keep_minority: bool) -> tuple[int, int]:
    """(positives, negatives) to keep: half of the negatives, positives fill up to ``target`` (at least 2)."""
    keep_negative = negatives // 2
    keep_positive = target - keep_negative
    if keep_minority and negatives and keep_negative == 0:
        keep_positive, keep_negative = target - 1, 1
    if keep_minority and positives and keep_positive == 0:
        keep_positive, keep_negative = 1, target - 1
    return keep_positive, keep_negative


def released_quotas(positives: int, negatives: int, target: int, config: RocConfig) -> tuple[int, int]:
    """(positives, negatives) that the released code keeps, Python's rounding of halves to even included.

    They may add up to another number than ``target``; the released code asserts there.
    """
    total = positives + negatives
    keep_negative = round(negatives * target / total)
    keep_positive = round(positives * target / total)
    if keep_negative < config.min_negative and keep_positive < config.min_positive:
        return positives, negatives
    least_negative = min(config.min_negative, negatives)
    if keep_negative <= least_negative:
        keep_negative, keep_positive = least_negative, target - least_negative
    least_positive = min(config.min_positive, positives)
    if keep_positive <= least_positive:
        keep_positive, keep_negative = least_positive, target - least_positive
    return keep_positive, keep_negative


def draw_by_quality(weights: Sequence[float], count: int, rng: random.Random) -> list[int]:
    """``count`` places drawn one after another without replacement, each with probability ∝ its weight.

    Exponential keys give exactly that distribution in one pass (Efraimidis and Spirakis, 2006):
    the smallest of Exp(1)/weight come first.
    """
    keys = [(-math.log(1.0 - rng.random()) / weight, place) for place, weight in enumerate(weights)]
    return [place for _, place in sorted(keys)[:count]]


def _choose(
    rewards: Sequence[float | None],
    p_totals: Sequence[float],
    usable: list[int],
    target: int,
    config: RocConfig,
    rng: random.Random,
) -> list[int]:
    if config.mode == "none":
        return usable
    if config.mode == "random":
        return rng.sample(usable, target)
    positives = [place for place in usable if _positive(rewards[place])]
    negatives = [place for place in usable if not _positive(rewards[place])]
    if config.mode == "released":
        keep_positive, keep_negative = released_quotas(len(positives), len(negatives), target, config)
        ranked = sorted(positives, key=lambda place: p_totals[place])  # stable: ties stay in order
        return ranked[:keep_positive] + negatives[:keep_negative]
    keep_positive, keep_negative = paper_quotas(
        len(positives), len(negatives), target, keep_minority=config.keep_minority
    )
    weights = [1.0 / (p_totals[place] + config.epsilon) for place in positives]
    drawn = [positives[index] for index in draw_by_quality(weights, keep_positive, rng)]
    return drawn + rng.sample(negatives, keep_negative)


def _positive(reward: float | None) -> bool:
    return reward is not None and reward > 0


def _equal(rewards: Sequence[float | None], places: Sequence[int]) -> bool:
    return len({rewards[place] for place in places}) == 1


def _drop(why: list[Why], places: Sequence[int], word: Why, dropped: Dropped) -> GroupSelection:
    for place in places:
        why[place] = word
    return GroupSelection(kept=[], why=why, dropped=dropped)
