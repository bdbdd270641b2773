import math
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rstar2cli.stats.passk import mean_pass_at_k, pass_at_k


@pytest.mark.parametrize(
    ("attempts", "correct", "k", "wanted"),
    [
        (4, 1, 1, 0.25),
        (4, 1, 2, 0.5),  # 3 of the 6 pairs hold the one correct answer
        (5, 2, 3, 0.9),  # 1 of the 10 triples holds none
        (8, 0, 8, 0.0),
        (8, 8, 1, 1.0),
        (3, 1, 3, 1.0),
    ],
)
def test_values_counted_by_hand(attempts, correct, k, wanted):
    assert pass_at_k(attempts, correct, k) == pytest.approx(wanted, abs=1e-12)


@given(st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_is_the_share_of_subsets_with_a_correct_answer(case):
    attempts, correct, k = case
    subsets = list(combinations(range(attempts), k))
    share = sum(any(item < correct for item in subset) for subset in subsets) / len(subsets)
    assert pass_at_k(attempts, correct, k) == pytest.approx(share, abs=1e-12)


def test_mean_over_problems():
    assert mean_pass_at_k([(4, 1), (4, 4)], 1) == pytest.approx(0.625)
    assert math.isnan(mean_pass_at_k([], 1))


@pytest.mark.parametrize("case", [(4, 5, 1), (4, -1, 1), (4, 1, 5), (4, 1, 0)])
def test_impossible_counts_are_refused(case):
    with pytest.raises(ValueError):
        pass_at_k(*case)
