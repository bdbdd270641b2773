"""pass@k: the chance that at least one of k answers is correct."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def pass_at_k(attempts: int, correct: int, k: int) -> float:
    """Unbiased estimate of pass@k of one problem from ``attempts`` ≥ k answers of which ``correct`` are right.

    1 − C(n−c, k) / C(n, k), as a product that does not overflow: Chen et al. 2021,
    "Evaluating Large Language Models Trained on Code", equation 1.
    Raises ``ValueError`` unless 0 ≤ correct ≤ attempts and 1 ≤ k ≤ attempts.
    """
    if not 0 <= correct <= attempts:
        raise ValueError(f"{correct} correct of {attempts} attempts")
    if not 1 <= k <= attempts:
        raise ValueError(f"pass@{k} needs at least {k} attempts, not {attempts}")
    if attempts - correct < k:
        return 1.0
    return float(1.0 - np.prod(1.0 - k / np.arange(attempts - correct + 1, attempts + 1)))


def mean_pass_at_k(counts: Sequence[tuple[int, int]], k: int) -> float:
    """Mean over problems of :func:`pass_at_k`; ``counts`` holds (attempts, correct) of each. NaN without problems."""
    if not counts:
        return float("nan")
    return float(np.mean([pass_at_k(attempts, correct, k) for attempts, correct in counts]))
