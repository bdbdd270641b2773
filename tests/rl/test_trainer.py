"""The loop end to end with a tiny model: what is written, what resumes, what is the same."""

from __future__ import annotations

import dataclasses
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from rl_digits import make_config, make_problems  # type: ignore[import-not-found]

from rstar2cli.core import drain
from rstar2cli.core.errors import DataError, OutputConflict, Stopped
from rstar2cli.core.progress import Progress
from rstar2cli.policy.load import load_policy
from rstar2cli.records import Metric, Problem, Selection, Trajectory
from rstar2cli.rl.config import LossConfig, RocConfig, TrainRlConfig
from rstar2cli.rl.trainer import train_rl
from rstar2cli.shards.digest import data_digest
from rstar2cli.shards.reader import read_records

HERE = Path(__file__).parent


def metrics(out: Path) -> dict[tuple[int, str], float]:
    return {(row.step, row.name): row.value for row in read_records([str(out / "metrics.jsonl")], Metric)}


@pytest.fixture(scope="module")
def reference(digit_model: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three deterministic steps that nothing disturbed."""
    out = tmp_path_factory.mktemp("reference") / "rl"
    train_rl(make_problems(), digit_model, str(out), make_config(steps=3), seed=5)
    return out


def weights(out: Path) -> str:
    return load_policy(out, device="cpu").digest


def test_a_run_writes_what_it_promises(reference: Path, digit_model: str) -> None:
    trajectories = list(read_records([str(reference / "rollouts")], Trajectory))
    selections = list(read_records([str(reference / "selections")], Selection))
    assert len(trajectories) == 3 * 2 * 8
    assert sorted(t.id for t in trajectories) == sorted(s.id for s in selections)
    assert {t.run for t in trajectories} == {"rl"}
    assert {turn.policy for t in trajectories if t.step == 2 for turn in t.turns} == {
        f"{load_policy(digit_model, device='cpu').digest}+rl@1"
    }
    kept = [s for s in selections if s.kept]
    assert kept
    assert all((s.advantage is not None) == s.kept == (s.why == "kept") for s in selections)
    assert abs(sum(s.advantage or 0.0 for s in kept)) < 1e-6
    figures = metrics(reference)
    for name in ("reward", "loss", "grad_norm", "mismatch_kl", "mismatch_max", "seconds_generate", "probe"):
        assert (3, name) in figures
    assert figures[1, "mismatch_max"] < 1e-3
    assert figures[1, "clip_fraction"] == 0.0  # exactly on policy
    assert figures[3, "updates"] == 3
    assert weights(reference) != load_policy(digit_model, device="cpu").digest


def test_selection_is_that_of_the_pure_function(reference: Path) -> None:
    by_group: dict[str, list[Selection]] = {}
    for record in read_records([str(reference / "selections")], Selection):
        by_group.setdefault(record.group, []).append(record)
    for records in by_group.values():
        kept = sum(record.kept for record in records)
        assert kept in (0, 4)


def test_the_same_seed_gives_the_same_run_and_another_seed_another(
    reference: Path, digit_model: str, tmp_path: Path
) -> None:
    again, other = tmp_path / "a" / "rl", tmp_path / "b" / "rl"
    config = make_config(steps=3)
    assert train_rl(make_problems(), digit_model, str(again), config, seed=5).policy == weights(reference)
    assert data_digest([str(again / "rollouts")]) == data_digest([str(reference / "rollouts")])
    assert train_rl(make_problems(), digit_model, str(other), config, seed=6).policy != weights(reference)


def test_micro_batches_change_nothing_but_rounding(reference: Path, digit_model: str, tmp_path: Path) -> None:
    config = make_config(steps=1)
    small = dataclasses.replace(config, optim=dataclasses.replace(config.optim, micro_tokens=200))
    train_rl(make_problems(), digit_model, str(tmp_path / "rl"), small, seed=5)
    ours, theirs = metrics(tmp_path / "rl"), metrics(reference)
    assert ours[1, "loss"] == pytest.approx(theirs[1, "loss"], rel=1e-4, abs=1e-6)
    assert ours[1, "grad_norm"] == pytest.approx(theirs[1, "grad_norm"], rel=1e-4)


SCRIPT = """
import os, signal, sys
sys.path.insert(0, {here!r})
from rl_digits import make_config, make_problems
from rstar2cli.rl import trainer
model, out, when = sys.argv[1:]
def die(report):
    if when == f"{{report.task}}-{{report.done}}":
        os.kill(os.getpid(), signal.SIGKILL)
    seen.append(report)
seen = []
config = make_config(steps=3)
optim = __import__("dataclasses").replace(config.optim, save_every=1)
config = __import__("dataclasses").replace(config, optim=optim)
trainer.train_rl(make_problems(), model, out, config, die, seed=5)
"""


@pytest.mark.parametrize("when", ["train-rl-2", "rollout-9"])
def test_killed_and_resumed_is_the_same_as_undisturbed(
    when: str, reference: Path, digit_model: str, tmp_path: Path
) -> None:
    """Killed after step 2 was recorded but before its checkpoint, and in the middle of the first step's rollouts."""
    out = tmp_path / "rl"
    code = SCRIPT.format(here=str(HERE))
    ended = subprocess.run([sys.executable, "-c", code, digit_model, str(out), when], timeout=240, check=False)
    assert ended.returncode == -signal.SIGKILL
    config = make_config(steps=3)
    result = train_rl(make_problems(), digit_model, str(out), config, seed=5, resume=True)
    assert result.policy == weights(reference)
    assert result.steps == 3
    assert data_digest([str(out / "rollouts")]) == data_digest([str(reference / "rollouts")])
    assert data_digest([str(out / "selections")]) == data_digest([str(reference / "selections")])
    steady = ("loss", "reward", "grad_norm", "updates")
    ours, theirs = metrics(out), metrics(reference)
    assert {key: v for key, v in ours.items() if key[1] in steady} == {
        key: v for key, v in theirs.items() if key[1] in steady
    }


@pytest.mark.parametrize("task", ["rollout", "train-rl"])
def test_a_drain_keeps_what_is_done_and_resumes(task: str, reference: Path, digit_model: str, tmp_path: Path) -> None:
    out = tmp_path / "rl"

    def ask(report: Progress) -> None:
        if report.task == task:
            drain.request("SIGTERM")

    config = make_config(steps=3)
    try:
        with pytest.raises(Stopped):
            train_rl(make_problems(), digit_model, str(out), config, ask, seed=5)
    finally:
        drain.reset()
    assert train_rl(make_problems(), digit_model, str(out), config, seed=5, resume=True).policy == weights(reference)


def test_a_finished_run_resumes_at_once(reference: Path, digit_model: str) -> None:
    begun = time.monotonic()
    result = train_rl(make_problems(), digit_model, str(reference), make_config(steps=3), seed=5, resume=True)
    assert (result.steps, result.policy, result.metrics) == (3, weights(reference), {})
    assert time.monotonic() - begun < 30


def test_stored_trajectories_train_as_the_loop_does(reference: Path, digit_model: str, tmp_path: Path) -> None:
    out = tmp_path / "rl"
    config = make_config(steps=3)
    stored = [str(reference / "rollouts")]
    result = train_rl(make_problems(), digit_model, str(out), config, seed=5, rollouts=stored)
    assert result.policy == weights(reference)


def test_stored_step_by_step(reference: Path, digit_model: str, tmp_path: Path) -> None:
    out = tmp_path / "rl"
    config = make_config(steps=3)
    for step in (1, 2, 3):
        stored = [str(reference / "rollouts" / f"step-{step:05d}")]
        result = train_rl(make_problems(), digit_model, str(out), config, seed=5, rollouts=stored, resume=step > 1)
        assert result.steps == step
    assert result.policy == weights(reference)


def test_trajectories_of_another_policy_are_refused(reference: Path, digit_model: str, tmp_path: Path) -> None:
    """The name of the run is part of the policy's: `other` did not write them."""
    stored, out, config = [str(reference / "rollouts")], str(tmp_path / "other"), make_config(steps=2)
    with pytest.raises(DataError, match="written by policy"):
        train_rl(make_problems(), digit_model, out, config, seed=5, rollouts=stored)
    result = train_rl(
        make_problems(), digit_model, out, config, seed=5, rollouts=stored, overwrite=True, off_policy=True
    )
    assert result.steps == 2
    assert 0 < result.metrics["mismatch_max"] < 1.0  # the loop wrote the second step after the same first update


def test_empty_steps_are_counted_and_stop_in_the_end(digit_model: str, tmp_path: Path) -> None:
    impossible = [Problem(id=p.id, source="test", prompt=p.prompt, answer="77") for p in make_problems()]
    out = tmp_path / "rl"
    result = train_rl(impossible, digit_model, str(out), make_config(steps=2), seed=5)
    assert (result.steps, result.updates, result.empty) == (2, 0, 2)
    assert metrics(out)[2, "empty_step"] == 1.0
    assert metrics(out)[2, "groups_equal_rewards"] == 2.0
    assert weights(out) == load_policy(digit_model, device="cpu").digest
    with pytest.raises(Stopped, match="2 steps in a row"):
        train_rl(impossible, digit_model, str(tmp_path / "b"), make_config(steps=9, max_empty=2), seed=5)


def test_refills_take_new_slots(digit_model: str, tmp_path: Path) -> None:
    out = tmp_path / "rl"
    train_rl(make_problems(), digit_model, str(out), make_config(steps=1, min_groups=4, refill=1), seed=5)
    slots = {t.slot: t.problem_id for t in read_records([str(out / "rollouts")], Trajectory)}
    assert sorted(slots) == [0, 1, 2, 3]
    assert len(set(slots.values())) == 4
    assert metrics(out)[1, "refills"] == 1.0
    assert metrics(out)[1, "groups"] == 4.0


@pytest.mark.parametrize(
    "changes",
    [
        {"mini_batches": 2},
        {"roc": RocConfig(mode="released")},
        {"roc": RocConfig(mode="random"), "loss": LossConfig(aggregation="token-mean", dual_clip=3.0)},
        {"roc": RocConfig(mode="none"), "loss": LossConfig(objective="cispo", mismatch="truncated")},
        {"loss": LossConfig(objective="gspo", aggregation="seq-mean-token-mean", clip_low=3e-4, clip_high=4e-4)},
    ],
)
def test_variants_run(changes: dict[str, object], digit_model: str, tmp_path: Path) -> None:
    config: TrainRlConfig = make_config(steps=1, **changes)
    result = train_rl(make_problems(), digit_model, str(tmp_path / "rl"), config, seed=5)
    assert result.steps == 1
    assert result.updates == (2 if config.mini_batches == 2 and result.metrics["groups_kept"] == 2 else 1)
    assert torch.isfinite(torch.tensor(result.metrics["loss"]))


def test_out_is_guarded(reference: Path, digit_model: str) -> None:
    with pytest.raises(OutputConflict):
        train_rl(make_problems(), digit_model, str(reference), make_config(steps=3), seed=5)
    with pytest.raises(OutputConflict, match="another configuration: seed: 5 → 6"):
        train_rl(make_problems(), digit_model, str(reference), make_config(steps=3), seed=6, resume=True)
    with pytest.raises(OutputConflict, match="another input"):
        train_rl(make_problems(5), digit_model, str(reference), make_config(steps=3), seed=5, resume=True)


def test_it_learns(digit_model: str, tmp_path: Path) -> None:
    """One digit is always right: after a few steps the model answers with it more often."""
    base = make_config()
    config = make_config(
        steps=24,
        prompts_per_step=3,
        samples=16,
        optim=dataclasses.replace(base.optim, lr=1e-3),
        rollout=dataclasses.replace(base.rollout, wave=24),
    )
    problems = [Problem(id=p.id, source="test", prompt=p.prompt, answer="2") for p in make_problems()]
    out = tmp_path / "rl"
    train_rl(problems, digit_model, str(out), config, seed=2)
    figures = metrics(out)
    rewards = [figures[step, "reward"] for step in range(1, 25)]
    assert sum(rewards[-4:]) / 4 > sum(rewards[:4]) / 4 + 0.15, rewards
