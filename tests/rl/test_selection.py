"""A step's selection: order of arrival never matters, every decision is on record, figures are what they say."""

from __future__ import annotations

import random

import pytest

from rstar2cli.records import Trajectory
from rstar2cli.rl.config import LossConfig, RocConfig
from rstar2cli.rl.loss import NO_MISMATCH, Mismatch
from rstar2cli.rl.metrics import mismatch_metrics, rollout_metrics
from rstar2cli.rl.selection import StepSelection, select_step


def one(
    slot: int, sample: int, reward: float | None, *, calls: int = 0, errors: int = 0, lost: bool = False
) -> Trajectory:
    verdict = "undecided" if reward is None else "correct" if reward else "wrong"
    return Trajectory(
        id=f"r:1:{slot}/{sample}", run="r", step=1, slot=slot, sample=sample, seed=0, problem_id=f"p{slot}", source="t",
        prompt_ids=[1], response_ids=[2, 3], mask=[True, True], logprobs=[-1.0, -1.0], turns=[],
        finish="lost" if lost else "length" if sample == 0 else "stop", gold="1", answer=None,
        verdict=verdict, reason=None, reward=reward, n_turns=1, n_tool_calls=calls, n_tool_errors=errors, n_answers=1,
        p_err=errors / calls if calls else 0.5, p_format=0.0, deterministic=False,
    )  # fmt: skip


def step() -> list[Trajectory]:
    """Slot 0: mixed; slot 1: all wrong; slot 2: too small after a loss; slot 3: mixed with an undecided one."""
    mixed = [one(0, s, float(s % 2), calls=2, errors=s % 4 // 3) for s in range(8)]
    wrong = [one(1, s, 0.0) for s in range(8)]
    small = [one(2, 0, 1.0), one(2, 1, 0.0), one(2, 2, 1.0), one(2, 3, None, lost=True)]
    undecided = [one(3, s, float(s < 2)) for s in range(7)] + [one(3, 7, None)]
    return [*mixed, *wrong, *small, *undecided]


def choose(trajectories: list[Trajectory], seed: int = 0) -> StepSelection:
    return select_step(trajectories, RocConfig(), LossConfig(), seed)


def test_order_of_arrival_does_not_matter() -> None:
    shuffled = step()
    random.Random(4).shuffle(shuffled)
    first, second = choose(step()), choose(shuffled)
    assert first.records == second.records
    assert [kept.trajectory.id for kept in first.kept] == [kept.trajectory.id for kept in second.kept]
    assert any(choose(step(), seed).records != first.records for seed in (1, 2, 3))


def test_slots_of_two_runs_are_two_groups() -> None:
    other = [one(0, s, float(s % 2)) for s in range(8)]
    for trajectory in other:
        trajectory.run, trajectory.id = "s", trajectory.id.replace("r:", "s:")
    selection = choose([*step()[:8], *other])
    assert selection.groups == 2
    assert {record.group for record in selection.records} == {"r:1:0", "s:1:0"}


def test_every_trajectory_has_a_record() -> None:
    selection = choose(step())
    assert [record.id for record in selection.records] == [trajectory.id for trajectory in step()]
    assert (selection.groups, selection.kept_groups) == (4, 2)
    assert dict(selection.dropped) == {"equal_rewards": 1, "group_too_small": 1}
    assert selection.why == {
        "kept": 4 + 3, "not_drawn": 4 + 4, "equal_rewards": 8, "group_too_small": 3, "lost": 1, "undecided": 1,
    }  # fmt: skip
    assert {kept.group for kept in selection.kept} == {0, 1}
    for group in (0, 1):
        assert sum(kept.advantage for kept in selection.kept if kept.group == group) == pytest.approx(0, abs=1e-9)


def test_figures() -> None:
    selection = choose(step())
    figures = rollout_metrics(step(), selection)
    usable = 8 + 8 + 3 + 7
    assert figures["reward"] == pytest.approx((4 + 0 + 2 + 2) / usable)
    assert figures["rollouts"] == 28 and figures["rollouts_kept"] == 7
    assert figures["positives_kept"] + figures["negatives_kept"] == 7
    assert (figures["lost"], figures["undecided"]) == (1, 1)
    assert figures["tool_error_share"] == pytest.approx(2 / 16)
    assert figures["tool_error_share_positive"] == pytest.approx(2 / 8)
    assert figures["truncated_share"] == pytest.approx(4 / usable)
    assert figures["groups_equal_rewards"] == 1


def test_nothing_is_made_up_for_an_empty_step() -> None:
    figures = rollout_metrics([], StepSelection())
    assert "reward" not in figures and "tool_error_share" not in figures
    assert mismatch_metrics(NO_MISMATCH) == {}
    assert mismatch_metrics(Mismatch(tokens=2, weight_sum=3.0, kl_sum=1.0, max_delta=0.5)) == {
        "mismatch_weight": 1.5, "mismatch_kl": 0.5, "mismatch_max": 0.5,
    }  # fmt: skip
