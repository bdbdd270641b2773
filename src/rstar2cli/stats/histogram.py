"""Counts of values in bins of equal width."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Histogram:
    """Bins [edges[i], edges[i+1]), the last one closed."""

    edges: tuple[float, ...]
    """Ascending, one more than counts."""
    counts: tuple[int, ...]
    """Values in each bin."""


def histogram(values: Sequence[float], bins: int = 10, *, integer: bool = False) -> Histogram:
    """Counts between the least and the greatest value; values that are not finite are left out.

    ``integer``: edges at whole numbers, so that no bin holds more different integers than
    another (one bin may be wider than asked: the width is a whole number). Empty without values.
    Raises ``ValueError`` for fewer than 1 bin.
    """
    if bins < 1:
        raise ValueError(f"{bins} bins")
    array = np.asarray(values, dtype=np.float64)
    array = array[np.isfinite(array)]
    if array.size == 0:
        return Histogram(edges=(), counts=())
    low, high = float(array.min()), float(array.max())
    if integer:
        low = math.floor(low)
        width = max(1, math.ceil((math.floor(high) - low + 1) / bins))
        number = math.ceil((math.floor(high) - low + 1) / width)
        edges = low + width * np.arange(number + 1, dtype=np.float64)
    else:
        edges = np.linspace(low, high if high > low else low + 1.0, bins + 1)
    counts, edges = np.histogram(array, edges)
    return Histogram(edges=tuple(map(float, edges)), counts=tuple(map(int, counts)))
