import math
from itertools import product

import numpy as np
import pytest

from rstar2cli.stats.bootstrap import mean_interval, paired_interval, problem_means


def test_ends_are_quantiles_of_all_resamples():
    """Three problems have 27 equally likely resamples: the exact distribution is known."""
    values = [0.0, 1.0, 4.0]
    exact = np.sort([np.mean(draw) for draw in product(values, repeat=3)])
    interval = mean_interval(values, seed=1, level=0.5, draws=40_000)
    assert interval.mean == pytest.approx(5 / 3)
    # 25% and 75% of 27 outcomes fall inside plateaus, so the ends are exact
    assert interval.low == pytest.approx(exact[6])
    assert interval.high == pytest.approx(exact[20])


def test_agrees_with_the_normal_interval_for_many_problems():
    values = [1.0] * 300 + [0.0] * 700
    interval = mean_interval(values, seed=3)
    half = 1.96 * math.sqrt(0.3 * 0.7 / 1000)
    assert interval.low == pytest.approx(0.3 - half, abs=0.002)
    assert interval.high == pytest.approx(0.3 + half, abs=0.002)
    assert interval.n == 1000


def test_samples_of_a_problem_move_together():
    """Repeating every value within its problem adds no information, so the interval must not shrink."""
    values = [0.0, 1.0, 1.0, 0.0, 1.0, 0.0]
    single = mean_interval(values, seed=5)
    problems = [problem for problem in range(6) for _ in range(50)]
    repeated = mean_interval([values[problem] for problem in problems], problems, 5)
    assert repeated == single


def test_problems_weigh_the_same_whatever_their_samples():
    interval = mean_interval([1.0, 0.0, 0.0, 0.0], ["a", "b", "b", "b"])
    assert interval.mean == 0.5


def test_seed_decides():
    values = list(np.random.default_rng(0).normal(size=50))
    assert mean_interval(values, seed=1) == mean_interval(values, seed=1)
    assert mean_interval(values, seed=1) != mean_interval(values, seed=2)


def test_pairing_removes_what_the_problems_share():
    base = list(np.random.default_rng(0).normal(size=40) * 10)
    better = [value + 1 for value in base]
    interval = paired_interval(base, better)
    assert (interval.low, interval.high) == (pytest.approx(1), pytest.approx(1))
    assert interval.excludes_zero
    assert paired_interval(better, base).high == pytest.approx(-1)


def test_only_problems_on_both_sides_count():
    interval = paired_interval({"a": 0.0, "b": 1.0, "c": 1.0}, {"b": 1.0, "a": 1.0, "d": 0.0})
    assert interval.n == 2
    assert interval.mean == 0.5
    assert not paired_interval({"a": 1.0}, {"a": 1.0}).excludes_zero


def test_means_keep_the_order_of_problems():
    assert list(problem_means([1.0, 0.0, 1.0], ["b", "a", "b"]).items()) == [("b", 1.0), ("a", 0.0)]


def test_nothing_to_draw_from():
    empty = mean_interval([])
    assert empty.n == 0
    assert math.isnan(empty.mean)
    assert not empty.excludes_zero


def test_bad_input_is_refused():
    with pytest.raises(ValueError):
        mean_interval([1.0, float("nan")])
    with pytest.raises(ValueError):
        mean_interval([1.0], ["a", "b"])
    with pytest.raises(ValueError):
        paired_interval([1.0], [1.0, 2.0])
    with pytest.raises(ValueError):
        paired_interval({"a": 1.0}, [1.0])
    with pytest.raises(ValueError):
        mean_interval([1.0], level=1.0)
