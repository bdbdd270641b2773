"""RoC: quotas, the distribution of draws, the released table, and what no group may violate."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rstar2cli.rl.config import RocConfig
from rstar2cli.rl.roc import draw_by_quality, p_total, paper_quotas, released_quotas, select_group

PAPER = RocConfig()
RELEASED = RocConfig(mode="released")


def group(positives: int, negatives: int) -> list[float | None]:
    return [1.0] * positives + [0.0] * negatives


@pytest.mark.parametrize(
    ("positives", "kept"),
    [(0, (0, 16)), (1, (1, 15)), *[(n, (2, 14)) for n in range(2, 6)], (16, (8, 8))]
    + [(n, (14, 2)) for n in range(27, 31)]
    + [(31, (15, 1)), (32, (16, 0))],
)
def test_released_quotas_are_those_of_the_released_code(positives: int, kept: tuple[int, int]) -> None:
    assert released_quotas(positives, 32 - positives, 16, RELEASED) == kept


def test_released_rounding_fault_is_reported() -> None:
    chosen = select_group(group(7, 7), [0.0] * 14, RELEASED, random.Random(0))
    assert len(chosen.kept) == 8
    assert chosen.fault == "released quotas keep 8 of 14 rollouts, not 7"


def test_released_keeps_a_tiny_group_whole() -> None:
    assert select_group(group(2, 2), [0.0] * 4, RELEASED, random.Random(0)).kept == [0, 1, 2, 3]


def test_released_sorts_positives_stably_and_takes_the_first_negatives() -> None:
    totals = [0.5, 0.0, 0.2, 0.0, 0.9, 0.9, 0.0, 0.0]
    chosen = select_group(group(4, 4), totals, RELEASED, random.Random(0))
    assert chosen.kept == [1, 3, 4, 5]  # positives 1 and 3 are cleanest; negatives come in order


@pytest.mark.parametrize(
    ("positives", "negatives", "to_the_letter", "with_minority"),
    [(31, 1, (16, 0), (15, 1)), (1, 30, (0, 15), (1, 14)), (16, 16, (8, 8), (8, 8)), (2, 30, (1, 15), (1, 15))],
)
def test_paper_quotas(
    positives: int, negatives: int, to_the_letter: tuple[int, int], with_minority: tuple[int, int]
) -> None:
    target = (positives + negatives) // 2
    assert paper_quotas(positives, negatives, target, keep_minority=False) == to_the_letter
    assert paper_quotas(positives, negatives, target, keep_minority=True) == with_minority


def test_draws_follow_the_weights() -> None:
    """Successive draws: P(a then b) = w_a/W · w_b/(W − w_a)."""
    weights = [4.0, 2.0, 1.0]
    rng = random.Random(7)
    rounds = 20_000
    seen = Counter(tuple(draw_by_quality(weights, 2, rng)) for _ in range(rounds))
    for first in range(3):
        for second in set(range(3)) - {first}:
            expected = weights[first] / 7 * weights[second] / (7 - weights[first])
            assert seen[first, second] / rounds == pytest.approx(expected, abs=0.015)


def test_clean_positives_are_kept_more_often() -> None:
    totals = [0.0, 1.5, 0.0, 1.5, 0.0, 0.0, 0.0, 0.0]
    seen: Counter[int] = Counter()
    for seed in range(500):
        seen.update(select_group(group(4, 4), totals, PAPER, random.Random(seed)).kept)
    assert seen[0] + seen[2] > 4 * (seen[1] + seen[3])
    assert min(seen[place] for place in range(4, 8)) > 200  # negatives: half of the time each


def test_small_epsilon_is_a_hard_sort() -> None:
    config = RocConfig(epsilon=1e-9)
    for seed in range(50):
        chosen = select_group(group(4, 4), [0.5, 0.0, 1.0, 0.0] + [0.0] * 4, config, random.Random(seed))
        assert chosen.kept[:2] == [1, 3]


def test_unusable_rollouts_leave_before_the_quota() -> None:
    rewards: list[float | None] = [1.0, None, 0.0, None, 1.0, 0.0]
    chosen = select_group(rewards, [0.0] * 6, PAPER, random.Random(0), lost=[False, True] + [False] * 4)
    assert chosen.why[1] == "lost"
    assert chosen.why[3] == "undecided"
    assert len(chosen.kept) == 2
    assert {rewards[place] for place in chosen.kept} == {0.0, 1.0}


def test_small_and_equal_groups_are_dropped() -> None:
    small = select_group([1.0, 0.0, None], [0.0] * 3, PAPER, random.Random(0))
    assert (small.dropped, small.why) == ("group_too_small", ["group_too_small", "group_too_small", "undecided"])
    equal = select_group(group(4, 0), [0.0] * 4, PAPER, random.Random(0))
    assert (equal.dropped, equal.kept, set(equal.why)) == ("equal_rewards", [], {"equal_rewards"})


def test_a_group_that_selection_made_equal_is_dropped_and_told_apart() -> None:
    letter = RocConfig(keep_minority=False)
    chosen = select_group(group(5, 1), [0.0] * 6, letter, random.Random(0))
    assert chosen.dropped == "equal_after_selection"
    assert chosen.kept == []
    assert Counter(chosen.why) == {"equal_rewards": 3, "not_drawn": 3}


def test_switches_of_the_penalty() -> None:
    assert p_total(0.5, 0.25, PAPER) == 0.75
    assert p_total(0.5, 0.25, RocConfig(p_err=False)) == 0.25
    assert p_total(0.5, 0.25, RocConfig(p_format=False)) == 0.5


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 1.0, None]), st.floats(0, 2)), max_size=40),
    st.sampled_from(["paper", "released", "random", "none"]),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_invariants(members: list[tuple[float | None, float]], mode: str, minority: bool, seed: int) -> None:
    rewards = [reward for reward, _ in members]
    totals = [total for _, total in members]
    config = RocConfig(mode=mode, keep_minority=minority)  # type: ignore[arg-type]
    chosen = select_group(rewards, totals, config, random.Random(seed))
    assert chosen == select_group(rewards, totals, config, random.Random(seed))
    assert chosen.kept == sorted(set(chosen.kept))
    assert [place for place, word in enumerate(chosen.why) if word == "kept"] == chosen.kept
    assert all((word == "undecided") == (rewards[place] is None) for place, word in enumerate(chosen.why))
    usable = [reward for reward in rewards if reward is not None]
    target = len(usable) if mode == "none" else len(usable) // 2
    if chosen.dropped:
        assert chosen.kept == []
    else:
        assert {rewards[place] for place in chosen.kept} == {0.0, 1.0}
        assert len(chosen.kept) == target or chosen.fault
    if chosen.dropped is None and mode == "paper":
        kept_negative = sum(rewards[place] == 0.0 for place in chosen.kept)
        assert kept_negative in {usable.count(0.0) // 2, 1, target - 1}
    if mode == "paper" and minority and target >= 2 and len(set(usable)) == 2:
        assert chosen.dropped is None
