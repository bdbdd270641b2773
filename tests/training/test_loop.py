"""Steps, denominators, resume: the same whatever the split, bitwise the same after stopping."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from small_training import TOTAL, make_sequences, nll, train

from rstar2cli.core.errors import DataError, Stopped
from rstar2cli.policy.digest import checkpoint_digest
from rstar2cli.policy.load import load_policy
from rstar2cli.policy.packing import TrainSequence, count_masked
from rstar2cli.policy.tiny import init_tiny
from rstar2cli.training.config import OptimConfig
from rstar2cli.training.loop import Trainer

CONFIG = OptimConfig(lr=1e-2, micro_tokens=200, dtype="float32", device="cpu")


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("base") / "tiny"
    init_tiny(path, seed=5, dtype=torch.float32)
    return str(path)


def trainer(base: str, out: Path, config: OptimConfig = CONFIG, total: int = TOTAL) -> Trainer:
    out.mkdir(parents=True, exist_ok=True)
    (out / "run.json").write_text("{}")
    return Trainer(base, out, config, total_steps=total)


def gradients(base: str, out: Path, sequences: list[TrainSequence], **changes: object) -> dict[str, torch.Tensor]:
    one = trainer(base, out, OptimConfig(**{"dtype": "float32", "device": "cpu", **changes}))
    denominator = count_masked(sequences)
    for batch in one._micro_batches(sequences):
        (-one._forward(batch, 1.0).sum() / denominator).backward()
    return {name: grad.clone() for name, grad in one.optimizer.gradients.items()}


def test_gradient_does_not_depend_on_the_split(base, tmp_path):
    """The bug of token-mean per micro-batch would show here: rows have very different counts."""
    sequences = make_sequences(0)
    whole = gradients(base, tmp_path / "a", sequences, micro_tokens=100_000)
    split = gradients(base, tmp_path / "b", sequences, micro_tokens=1, head_chunk=3)
    turned = gradients(base, tmp_path / "c", sequences[::-1], micro_tokens=130)
    recomputed = gradients(base, tmp_path / "d", sequences, micro_tokens=130, recompute=True)
    for name, grad in whole.items():
        for other in (split, turned, recomputed):
            assert (other[name] - grad).norm() <= 1e-4 * grad.norm() + 1e-9, name


def test_loss_falls_and_figures_are_right(base, tmp_path):
    one = trainer(base, tmp_path / "run")
    sequences = make_sequences(0)
    results = [one.step(sequences, nll(sequences)) for _ in range(4)]
    assert results[-1].loss < results[0].loss - 0.1
    assert [r.step for r in results] == [1, 2, 3, 4]
    assert results[0].tokens == sum(len(s.ids) for s in sequences)
    assert results[0].counted == count_masked(sequences)
    assert results[0].loss == pytest.approx(5.56, abs=0.3)  # log 259 of a random model


def test_logprobs_are_those_of_the_step(base, tmp_path):
    one = trainer(base, tmp_path / "run")
    sequences = make_sequences(0)
    before = one.logprobs(sequences)
    assert before.shape == (count_masked(sequences),)
    assert one.step(sequences, nll(sequences)).loss == pytest.approx(-float(before.mean()), rel=1e-5)
    assert one.logprobs(sequences).mean() > before.mean()


def test_clipping_bounds_the_gradient(base, tmp_path):
    one = trainer(base, tmp_path / "run", OptimConfig(max_grad_norm=0.01, dtype="float32", device="cpu"))
    sequences = make_sequences(0)
    for batch in one._micro_batches(sequences):
        (-one._forward(batch, 1.0).sum()).backward()
    assert one.optimizer.clip() > 1
    after = torch.cat([g.flatten() for g in one.optimizer.gradients.values()]).norm()
    assert float(after) == pytest.approx(0.01, rel=1e-3)


def test_bfloat16_model_follows_its_float32_masters(base, tmp_path):
    """A step too small for bfloat16 must still add up in the masters."""
    one = trainer(base, tmp_path / "run", OptimConfig(lr=1e-5, dtype="bfloat16", device="cpu"), total=60)
    sequences = make_sequences(0)
    name = "model.embed_tokens.weight"
    start = one.optimizer.masters[name].clone()
    for _ in range(3):
        one.step(sequences, nll(sequences))
    weight = dict(one.policy.model.named_parameters())[name]
    assert weight.dtype == torch.bfloat16
    assert torch.equal(weight, one.optimizer.masters[name].bfloat16())
    assert 0 < float((one.optimizer.masters[name] - start).abs().max()) < 1e-4


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_stop_and_resume_is_bitwise_the_same(base, tmp_path, dtype):
    straight = train(base, tmp_path / "straight", dtype=dtype)
    with pytest.raises(Stopped, match="step 2 of 4 is saved"):
        train(base, tmp_path / "stopped", dtype=dtype, stop_after=2)
    resumed = train(base, tmp_path / "stopped", dtype=dtype, resume=True)
    assert resumed == straight
    histories = [(tmp_path / name / "metrics.jsonl").read_text().splitlines() for name in ("straight", "stopped")]
    assert len(histories[0]) == len(histories[1])
    losses = [[line.split('"run":')[1].split(",", 1)[1] for line in h if '"loss"' in line] for h in histories]
    assert losses[0] == losses[1]


def test_kill_between_checkpoints_and_resume_is_bitwise_the_same(base, tmp_path):
    straight = train(base, tmp_path / "straight")
    out = tmp_path / "killed"
    command = [sys.executable, str(Path(__file__).with_name("small_training.py")), base, str(out), "kill-after-3"]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": "src"}, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert '"step":3' in (out / "metrics.jsonl").read_text()  # done, but not in a checkpoint: done again
    assert [p.name for p in (out / "checkpoints").iterdir()] == ["step-00002"]
    assert train(base, out, resume=True) == straight
    assert (out / "metrics.jsonl").read_text().count('"loss"') == TOTAL


def test_resume_refuses_another_model(base, tmp_path):
    with pytest.raises(Stopped):
        train(base, tmp_path / "run", stop_after=2)
    init_tiny(tmp_path / "other", seed=6, dtype=torch.float32)
    with pytest.raises(DataError, match="started from model"):
        train(str(tmp_path / "other"), tmp_path / "run", resume=True)


def test_resume_says_which_checkpoint_is_damaged(base, tmp_path):
    with pytest.raises(Stopped):
        train(base, tmp_path / "run", stop_after=2)
    broken = tmp_path / "run" / "checkpoints" / "step-00002" / "state.safetensors"
    broken.write_bytes(broken.read_bytes()[:1000])
    with pytest.raises(DataError, match=r"step-00002.*can't be read"):
        train(base, tmp_path / "run", resume=True)


def test_only_the_newest_checkpoints_stay(base, tmp_path):
    one = trainer(base, tmp_path / "run", OptimConfig(save_every=1, keep=2, dtype="float32", device="cpu"), total=5)
    sequences = make_sequences(0)
    for _ in range(4):
        one.step(sequences, nll(sequences))
        one.safe_point({})
    assert sorted(p.name for p in (tmp_path / "run" / "checkpoints").iterdir()) == ["step-00003", "step-00004"]


def test_finished_model_loads_and_has_the_digest(base, tmp_path):
    digest = train(base, tmp_path / "run")
    assert checkpoint_digest(tmp_path / "run" / "model") == digest
    assert load_policy(tmp_path / "run").digest == digest


def test_a_step_without_a_counted_token_is_refused(base, tmp_path):
    with pytest.raises(DataError, match="no token"):
        trainer(base, tmp_path / "run").step([TrainSequence(ids=[1, 2], mask=[False, False])], lambda lp, b: lp.sum())


def test_a_loss_that_is_not_finite_leaves_the_weights(base, tmp_path):
    one = trainer(base, tmp_path / "run")
    before = one.digest()
    with pytest.raises(Stopped, match="step 1: loss nan"):
        one.step(make_sequences(0), lambda lp, b: lp.sum() * float("nan"))
    assert one.digest() == before
    one.step(make_sequences(0), nll(make_sequences(0)))  # and no NaN stayed in the gradients
    assert one.step_done == 1


def test_random_state_is_part_of_the_checkpoint(base, tmp_path):
    one = trainer(base, tmp_path / "run")
    sequences = make_sequences(0)
    one.step(sequences, nll(sequences))
    torch.manual_seed(77)
    one.save({"place": 3})
    expected = torch.rand(3)
    torch.manual_seed(1)
    other = trainer(base, tmp_path / "run")
    assert other.resume() == {"place": 3}
    assert torch.equal(torch.rand(3), expected)
