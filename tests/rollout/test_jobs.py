"""Slots, ids and the permutation of the problems."""

from collections import Counter

import pytest
from scripted import problem

from rstar2cli.rollout.config import RolloutConfig
from rstar2cli.rollout.jobs import make_jobs, step_places


def test_a_plain_rollout_takes_all_problems_in_order() -> None:
    jobs = make_jobs([problem(n) for n in range(3)], RolloutConfig(run="r", samples=2), seed=1)
    assert [job.id for job in jobs] == ["r:0:0/0", "r:0:0/1", "r:0:1/0", "r:0:1/1", "r:0:2/0", "r:0:2/1"]
    assert [job.problem.id for job in jobs] == ["p0", "p0", "p1", "p1", "p2", "p2"]


def test_steps_pass_over_all_problems_before_any_comes_again() -> None:
    places = [place for step in range(1, 6) for place in step_places(10, step, 4, seed=3)]
    assert Counter(places[:10]) == Counter(range(10)) == Counter(places[10:20])
    assert places[:10] != places[10:20]
    assert step_places(10, 3, 4, seed=3) == places[8:12]
    assert step_places(10, 1, 4, seed=4) != places[:4]


def test_a_step_may_be_larger_than_the_problems() -> None:
    assert Counter(step_places(3, 1, 7, seed=0)).most_common()[0][1] == 3
    assert step_places(0, 1, 7, seed=0) == []


def test_a_step_names_its_slots_from_zero() -> None:
    config = RolloutConfig(step=2, problems_per_step=2)
    jobs = make_jobs([problem(n) for n in range(9)], config, seed=1)
    assert [job.id for job in jobs] == ["rollout:2:0/0", "rollout:2:1/0"]


@pytest.mark.parametrize(
    "wrong", [{"samples": 0}, {"max_lost": 2.0}, {"run": "a:b"}, {"run": ""}, {"wave": 0}, {"step": -1}]
)
def test_values_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        RolloutConfig(**wrong)  # type: ignore[arg-type]
