"""Did two models differ on the same problems?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class McNemar:
    """Result of the exact test."""

    only_a: int
    """Problems that only a solved."""
    only_b: int
    """Problems that only b solved."""
    p: float
    """Two-sided p-value; 1 if no problem flipped."""


def mcnemar(a: Sequence[bool], b: Sequence[bool]) -> McNemar:
    """Exact two-sided McNemar test on paired yes/no results (same problems in the same order).

    Under "no difference" the flips fall either way with probability ½, so the p-value is
    min(1, 2·P[Binomial(flips, ½) ≤ min(only_a, only_b)]): McNemar 1947, Psychometrika 12;
    exact form as in Fagerland et al. 2013, BMC Med. Res. Methodol. 13:91, §"The exact conditional test".
    Raises ``ValueError`` if the lengths differ.
    """
    if len(a) != len(b):
        raise ValueError(f"{len(a)} results on one side, {len(b)} on the other")
    only_a = sum(1 for left, right in zip(a, b, strict=True) if left and not right)
    only_b = sum(1 for left, right in zip(a, b, strict=True) if right and not left)
    return McNemar(only_a=only_a, only_b=only_b, p=_two_sided(only_a, only_b))


def _two_sided(x: int, y: int) -> float:
    flips = x + y
    tail = sum(math.comb(flips, k) for k in range(min(x, y) + 1))
    return min(1.0, 2 * tail / (1 << flips))  # whole numbers until the division: exact for any number of flips
