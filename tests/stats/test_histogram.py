import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rstar2cli.stats.histogram import histogram


def test_counts_by_hand():
    result = histogram([0, 1, 1, 2, 4], bins=2)
    assert result.edges == (0.0, 2.0, 4.0)
    assert result.counts == (3, 2)  # 2 opens the second bin, 4 closes it


def test_integer_bins_hold_equally_many_integers():
    result = histogram([1, 2, 3, 4, 5, 6, 7], bins=3, integer=True)
    assert result.edges == (1.0, 4.0, 7.0, 10.0)
    assert result.counts == (3, 3, 1)


def test_few_integers_get_a_bin_each():
    assert histogram([2, 2, 3], bins=10, integer=True).counts == (2, 1)


def test_one_value_and_none():
    assert sum(histogram([5.0]).counts) == 1
    assert histogram([]).counts == ()
    assert histogram([math.nan, math.inf]).counts == ()
    with pytest.raises(ValueError):
        histogram([1.0], bins=0)


@given(st.lists(st.integers(-1000, 1000), min_size=1), st.integers(1, 20), st.booleans())
def test_every_value_is_counted_once(values, bins, integer):
    result = histogram(values, bins, integer=integer)
    assert sum(result.counts) == len(values)
    assert len(result.edges) == len(result.counts) + 1
    assert len(result.counts) <= bins
