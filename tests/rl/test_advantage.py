"""Advantages by hand."""

from __future__ import annotations

import pytest

from rstar2cli.rl.advantage import advantages


def test_std_is_the_sample_deviation() -> None:
    assert advantages([1.0, 0.0, 0.0, 0.0]) == pytest.approx([1.5, -0.5, -0.5, -0.5], rel=1e-5)  # mean 1/4, std 1/2


def test_center_only_subtracts_the_mean() -> None:
    assert advantages([1.0, 0.0, 0.0, 0.0], "center") == [0.75, -0.25, -0.25, -0.25]


@pytest.mark.parametrize("rewards", [[], [1.0], [0.0, 0.0], [0.1] * 3])
def test_nothing_to_compare_gives_zero(rewards: list[float]) -> None:
    assert advantages(rewards) == [0.0] * len(rewards)
    assert advantages(rewards, "center") == [0.0] * len(rewards)


def test_they_sum_to_zero() -> None:
    assert sum(advantages([0.0, 1.0, 1.0, 0.3, 0.2])) == pytest.approx(0.0, abs=1e-9)
