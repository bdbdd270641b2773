"""Percentile bootstrap intervals over problems.

Samples of one problem are not independent of each other, so problems are drawn, each
with all its samples (a cluster bootstrap): Efron & Tibshirani 1993, "An Introduction
to the Bootstrap", §13.3 (percentile interval) and §8.6 (blocks).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

DRAWS = 10_000
"""Resamples; the ends of a 95% interval then vary by about 1% of its width."""
_CHUNK_CELLS = 1 << 22  # resampled indices held at once


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A mean with its interval."""

    mean: float
    """Mean over problems; NaN without any."""
    low: float
    """Lower end."""
    high: float
    """Upper end."""
    level: float
    """Coverage asked for: 0.95."""
    n: int
    """Problems (clusters)."""

    @property
    def excludes_zero(self) -> bool:
        """Whether 0 lies outside."""
        return self.low > 0 or self.high < 0


def mean_interval(
    values: Sequence[float],
    groups: Sequence[Hashable] | None = None,
    seed: int = 0,
    *,
    level: float = 0.95,
    draws: int = DRAWS,
) -> Interval:
    """Interval of the mean over problems of the mean over samples.

    ``values``: one per (problem, sample); ``groups``: the problem of each value (default: each
    its own). Raises ``ValueError`` for values that are not finite or lengths that differ.
    """
    return _interval(np.array(list(_means(values, groups).values()), dtype=np.float64), seed, level, draws)


def paired_interval(
    a: Mapping[Hashable, float] | Sequence[float],
    b: Mapping[Hashable, float] | Sequence[float],
    seed: int = 0,
    *,
    level: float = 0.95,
    draws: int = DRAWS,
) -> Interval:
    """Interval of the mean of b − a over problems, each problem drawn with both its values.

    ``a``, ``b``: mean value of each problem, by problem (only those in both count) or in the same order.
    Raises ``ValueError`` for sequences of different length.
    """
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        keys = [key for key in a if key in b]
        left, right = [a[key] for key in keys], [b[key] for key in keys]
    elif isinstance(a, Mapping) or isinstance(b, Mapping):
        raise ValueError("give both sides by problem, or both as sequences")
    else:
        left, right = list(a), list(b)
    if len(left) != len(right):
        raise ValueError(f"{len(left)} values on one side, {len(right)} on the other")
    return _interval(_finite(right) - _finite(left), seed, level, draws)


def problem_means(values: Sequence[float], groups: Sequence[Hashable]) -> dict[Hashable, float]:
    """Mean of each problem's samples, problems in order of first appearance; for :func:`paired_interval`."""
    return _means(values, groups)


def _means(values: Sequence[float], groups: Sequence[Hashable] | None) -> dict[Hashable, float]:
    keys: Sequence[Hashable] = range(len(values)) if groups is None else groups
    if len(keys) != len(values):
        raise ValueError(f"{len(values)} values but {len(keys)} groups")
    _finite(values)
    held: dict[Hashable, list[float]] = {}
    for key, value in zip(keys, values, strict=True):
        held.setdefault(key, []).append(value)
    return {key: float(np.mean(group)) for key, group in held.items()}


def _finite(values: Sequence[float]) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError("values must be finite; leave out what could not be measured")
    return array


def _interval(means: NDArray[np.float64], seed: int, level: float, draws: int) -> Interval:
    if not 0 < level < 1:
        raise ValueError(f"level {level} is not between 0 and 1")
    count = len(means)
    if count == 0:
        return Interval(mean=float("nan"), low=float("nan"), high=float("nan"), level=level, n=0)
    generator = np.random.default_rng(seed)
    chunk = max(1, _CHUNK_CELLS // count)
    parts = []
    for start in range(0, draws, chunk):
        rows = generator.integers(0, count, size=(min(chunk, draws - start), count))
        parts.append(means[rows].mean(axis=1))
    tail = (1 - level) / 2
    low, high = np.quantile(np.concatenate(parts), [tail, 1 - tail])
    return Interval(mean=float(means.mean()), low=float(low), high=float(high), level=level, n=count)
