"""Kept trajectories to tensors, the loss over micro-batches, and that a step raises what was right."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from rstar2cli.core.errors import DataError
from rstar2cli.policy.packing import MicroBatch, pack
from rstar2cli.policy.tiny import init_tiny
from rstar2cli.records import Trajectory
from rstar2cli.rl.batch import LossSums, make_batch, micro_loss, split_by_group
from rstar2cli.rl.config import LossConfig
from rstar2cli.rl.selection import Kept
from rstar2cli.training.config import OptimConfig
from rstar2cli.training.loop import Trainer
from rstar2cli.training.rundir import open_run


def trajectory(sample: int, written: list[int], tool: list[int], reward: float) -> Trajectory:
    """Prompt, the model's tokens, a tool's, and one more of the model's."""
    own = len(written)
    return Trajectory(
        id=f"r:1:0/{sample}", run="r", step=1, slot=0, sample=sample, seed=0, problem_id="p", source="t",
        prompt_ids=[5, 6, 7],
        response_ids=[*written, *tool, 9],
        mask=[True] * own + [False] * len(tool) + [True],
        logprobs=[-1.0] * own + [None] * len(tool) + [-2.0],
        turns=[], finish="stop", gold="1", answer=None, verdict="correct" if reward else "wrong", reason=None,
        reward=reward, n_turns=1, n_tool_calls=0, n_tool_errors=0, n_answers=1, p_err=0.5, p_format=0.0,
        deterministic=False,
    )  # fmt: skip


def kept() -> list[Kept]:
    return [
        Kept(trajectory=trajectory(0, [20, 21, 22], [1, 2], 1.0), group=0, advantage=0.7),
        Kept(trajectory=trajectory(1, [30], [], 0.0), group=0, advantage=-0.7),
        Kept(trajectory=trajectory(2, [40, 41], [3], 1.0), group=1, advantage=0.5),
    ]


def test_only_what_the_model_wrote_counts() -> None:
    batch = make_batch(kept(), LossConfig())
    assert [sequence.n_masked for sequence in batch.sequences] == [4, 2, 3]
    assert batch.sequences[0].ids == [5, 6, 7, 20, 21, 22, 1, 2, 9]
    assert batch.sequences[0].mask == [False] * 3 + [True] * 3 + [False] * 2 + [True]
    assert batch.sampler.tolist() == [-1.0, -1.0, -1.0, -2.0, -1.0, -2.0, -1.0, -1.0, -2.0]
    assert batch.weight.tolist() == pytest.approx([1 / 12, 1 / 12, 1 / 6])


@pytest.mark.parametrize("budget", [1, 20, 1000])
def test_micro_batches_add_up_to_the_batch(budget: int) -> None:
    """Any split gives the loss, the gradient and the figures of the formula on the whole batch."""
    batch = make_batch(kept(), LossConfig())
    config = LossConfig(mismatch="truncated")
    logp = torch.linspace(-2.0, -0.5, 9, dtype=torch.float32).requires_grad_()
    sums = LossSums()
    total = torch.zeros(())
    for micro in pack(batch.sequences, budget):
        total = total + micro_loss(logp[micro.flat], micro, batch, config, sums, old=logp.detach() - 0.1)
    (gradient,) = torch.autograd.grad(total, logp)
    advantage = torch.tensor([0.7] * 4 + [-0.7] * 2 + [0.5] * 3)
    weight = torch.tensor([1 / 12] * 6 + [1 / 6] * 3)
    mismatch = ((logp.detach() - 0.1) - batch.sampler).exp().clamp(max=2.0)
    ratio = torch.tensor(0.1).exp()
    expected = -(advantage * ratio * weight * mismatch)
    assert total.item() == pytest.approx(expected.sum().item(), rel=1e-5)
    assert gradient.tolist() == pytest.approx(expected.tolist(), rel=1e-5)
    assert sums.tokens == sums.mismatch.tokens == 9
    assert sums.metrics()["entropy"] == pytest.approx(1.25)


def test_mini_batches_hold_whole_groups() -> None:
    parts = split_by_group(kept(), 2)
    assert [[item.trajectory.sample for item in part] for part in parts] == [[0, 1], [2]]
    assert len(split_by_group(kept(), 5)) == 2


def test_damaged_trajectories_are_named() -> None:
    short = trajectory(0, [20], [], 1.0)
    short.logprobs = short.logprobs[:-1]
    with pytest.raises(DataError, match="r:1:0/0: 2 response tokens"):
        make_batch([Kept(trajectory=short, group=0, advantage=1.0)], LossConfig())
    unknown = trajectory(0, [20], [], 1.0)
    unknown.logprobs[0] = None
    with pytest.raises(DataError, match="no log-prob"):
        make_batch([Kept(trajectory=unknown, group=0, advantage=1.0)], LossConfig())


def test_a_step_raises_the_right_and_lowers_the_wrong(tmp_path: Path) -> None:
    init_tiny(tmp_path / "model", hidden=32, heads=2, kv_heads=1, head_dim=16)
    batch = make_batch(kept(), LossConfig())
    optim = OptimConfig(lr=1e-3, device="cpu", dtype="float32")
    with open_run(tmp_path / "run", stage="train-rl", config={}) as out:
        trainer = Trainer(str(tmp_path / "model"), out, optim, total_steps=1)
        before = trainer.logprobs(batch.sequences)

        def loss(logp: Tensor, micro: MicroBatch) -> Tensor:
            return micro_loss(logp, micro, batch, LossConfig(), LossSums(), old=None)

        trainer.step(batch.sequences, loss)
        change = trainer.logprobs(batch.sequences) - before
    # The last token of each is the same and pulled both ways; the others are each trajectory's own.
    assert (change[[0, 1, 2, 6, 7]] > 0).all()
    assert change[4] < 0
