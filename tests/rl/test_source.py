"""Where rollouts come from: refills and what is not taken from outside."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from rl_digits import make_config, make_problems  # type: ignore[import-not-found]
from test_selection import one  # type: ignore[import-not-found]

from rstar2cli.core.errors import DataError, InputMissing
from rstar2cli.records import Trajectory
from rstar2cli.records.codec import encode_line
from rstar2cli.rl.source import StoredRollouts, check_policy, refill_jobs, step_config
from rstar2cli.rollout.jobs import make_jobs


def stored(tmp_path: Path, *trajectories: Trajectory) -> list[str]:
    (tmp_path / "t.jsonl").write_bytes(b"".join(map(encode_line, trajectories)))
    return [str(tmp_path / "t.jsonl")]


def test_refills_are_other_problems_in_new_slots_until_there_are_none() -> None:
    problems = make_problems(7)
    config = step_config(make_config(), "rl", 3)
    own = make_jobs(problems, config, 9)
    rounds = [refill_jobs(problems, config, 9, refill) for refill in (1, 2, 3, 4)]
    assert rounds == [refill_jobs(problems, config, 9, refill) for refill in (1, 2, 3, 4)]
    assert [sorted({job.slot for job in jobs}) for jobs in rounds] == [[2, 3], [4, 5], [6], []]
    used = [job.problem.id for jobs in [own, *rounds] for job in jobs]
    assert {used.count(problem.id) for problem in problems} == {8}
    ids = [job.id for jobs in [own, *rounds] for job in jobs]
    assert len(set(ids)) == len(ids)
    assert {job.step for jobs in rounds for job in jobs} == {3}


def test_plain_and_doubled_and_missing_trajectories_are_refused(tmp_path: Path) -> None:
    plain = one(0, 0, 1.0)
    plain.step = 0
    with pytest.raises(DataError, match="no training step"):
        StoredRollouts(stored(tmp_path, plain), off_policy=False)
    with pytest.raises(DataError, match="there twice"):
        StoredRollouts(stored(tmp_path, one(0, 0, 1.0), one(0, 0, 1.0)), off_policy=False)
    with pytest.raises(InputMissing):
        StoredRollouts(stored(tmp_path), off_policy=False)


def test_steps_that_are_there(tmp_path: Path) -> None:
    source = StoredRollouts(stored(tmp_path, one(0, 0, 1.0)), off_policy=False)
    assert source.has(1) and not source.has(2)


def test_another_policy_is_named() -> None:
    from rstar2cli.records import Turn

    trajectory = one(0, 0, 1.0)
    trajectory.turns = [Turn(text="", policy="a+r@1", finish="stop", n_tokens=1)]
    check_policy([trajectory], {"a+r@1"})
    with pytest.raises(DataError, match=r"r:1:0/0: written by policy a\+r@1, the present one is a\+r@2"):
        check_policy([trajectory], {"a+r@2"})


def test_step_configuration_is_that_of_the_loop() -> None:
    config = make_config()
    step = step_config(config, "rl", 4)
    assert (step.run, step.step, step.problems_per_step, step.samples) == ("rl", 4, 2, 8)
    assert dataclasses.replace(step, run="rollout", step=0, problems_per_step=0, samples=1) == config.rollout
