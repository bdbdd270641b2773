"""Advantages of the kept rollouts of a group, from their rewards alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

STD_FLOOR = 1e-6


def advantages(rewards: Sequence[float], mode: Literal["std", "center"] = "std") -> list[float]:
    """One advantage per kept rollout of one group.

    ``std``: (R − mean) / (std + 1e-6) with the sample standard deviation (n − 1), as GRPO;
    ``center``: R − mean (Dr. GRPO). A group of one, or of equal rewards, has advantages of 0.
    """
    count = len(rewards)
    if count < 2 or len(set(rewards)) == 1:
        return [0.0] * count
    mean = sum(rewards) / count
    centered = [reward - mean for reward in rewards]
    if mode == "center":
        return centered
    std = math.sqrt(sum(value * value for value in centered) / (count - 1))
    return [value / (std + STD_FLOOR) for value in centered]
