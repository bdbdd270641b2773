"""The objective against numbers made by hand and a naive reference, values and gradients."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from rstar2cli.rl.config import Aggregation, LossConfig
from rstar2cli.rl.loss import NO_MISMATCH, mismatch, mismatch_weight, sequence_weights, token_loss

AGGREGATIONS: list[Aggregation] = [
    "group-token-mean",
    "token-mean",
    "seq-mean-token-mean",
    "seq-mean-token-sum",
    "constant",
]


def run(ratios: list[float], advantages: list[float], **config: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Loss, d loss / d log π and the clip mask of tokens with the given ratios, all of one sequence."""
    old = torch.full((len(ratios),), -1.0, dtype=torch.float64)
    logp = (old + torch.tensor(ratios, dtype=torch.float64).log()).requires_grad_()
    result = token_loss(
        logp, old, torch.tensor(advantages, dtype=torch.float64), torch.zeros(len(ratios), dtype=torch.long),
        LossConfig(**config),
    )  # fmt: skip
    (gradient,) = torch.autograd.grad(result.loss.sum(), logp)
    return result.loss.detach(), gradient, result.clipped


def test_clip_higher_by_hand() -> None:
    loss, gradient, clipped = run([1.0, 1.5, 0.5, 1.5, 0.5], [2.0, 2.0, 2.0, -2.0, -2.0])
    # A > 0: capped above at 1.28; A < 0: floored below at 0.8; the other directions stay unbounded.
    assert loss.tolist() == pytest.approx([-2.0, -2.56, -1.0, 3.0, 1.6])
    assert gradient.tolist() == pytest.approx([-2.0, 0.0, -1.0, 3.0, 0.0])
    assert clipped.tolist() == [False, True, False, False, True]


def test_dual_clip_bounds_negative_advantages_alone() -> None:
    loss, gradient, _ = run([5.0, 2.0, 0.1], [-1.0, -1.0, 1.0], dual_clip=3.0)
    assert loss.tolist() == pytest.approx([3.0, 2.0, -0.1])
    assert gradient.tolist() == pytest.approx([0.0, 2.0, -0.1])


def test_delta_is_clamped_before_exp() -> None:
    logp = torch.tensor([-1.0, -500.0], requires_grad=True)
    old = torch.tensor([-500.0, -1.0])
    zero = torch.zeros(2, dtype=torch.long)
    result = token_loss(logp, old, torch.tensor([-1.0, -1.0]), zero, LossConfig())
    assert result.loss[0].item() == pytest.approx(math.exp(20), rel=1e-5)
    assert torch.isfinite(torch.autograd.grad(result.loss.sum(), logp)[0]).all()


def test_on_policy_the_gradient_is_that_of_reinforce() -> None:
    _, gradient, clipped = run([1.0, 1.0], [0.7, -0.3])
    assert gradient.tolist() == pytest.approx([-0.7, 0.3])
    assert not clipped.any()


def test_cispo_keeps_a_gradient_where_clip_has_none() -> None:
    loss, gradient, clipped = run([1.5, 0.5, 1.1], [2.0, -2.0, 1.0], objective="cispo")
    assert gradient.tolist() == pytest.approx([-2.56, 1.6, -1.1])
    assert loss[0].item() == pytest.approx(-1.28 * 2 * (-1.0 + math.log(1.5)))
    assert clipped.tolist() == [True, True, False]


def test_gspo_uses_one_ratio_per_sequence() -> None:
    config = LossConfig(objective="gspo", aggregation="seq-mean-token-mean", clip_low=0.2, clip_high=0.28)
    delta = torch.tensor([0.2, -0.1, 0.4, 0.0], dtype=torch.float64)
    logp = delta.clone().requires_grad_()
    sequence = torch.tensor([7, 3, 7, 3])
    advantage = torch.tensor([1.0, -1.0, 1.0, -1.0], dtype=torch.float64)
    result = token_loss(logp, torch.zeros_like(delta), advantage, sequence, config)
    first, second = math.exp(0.3), math.exp(-0.05)
    assert result.loss.tolist() == pytest.approx([-1.28, second, -1.28, second])
    (gradient,) = torch.autograd.grad(result.loss.sum(), logp)
    assert gradient.tolist() == pytest.approx([0.0, second, 0.0, second])
    assert first > 1.28
    assert result.clipped.tolist() == [True, False, True, False]


def test_mismatch_weights() -> None:
    old = torch.tensor([0.0, 0.0, 0.0])
    sampler = torch.tensor([math.log(0.25), 0.0, math.log(4.0)])  # w = 4, 1, 1/4
    truncated = mismatch_weight(old, sampler, LossConfig(mismatch="truncated"))
    masked = mismatch_weight(old, sampler, LossConfig(mismatch="masked"))
    assert truncated.tolist() == pytest.approx([2.0, 1.0, 0.25])
    assert masked.tolist() == pytest.approx([0.0, 1.0, 0.0])


def test_mismatch_multiplies_after_the_clip() -> None:
    logp = torch.tensor([math.log(1.5)], requires_grad=True)
    result = token_loss(
        logp, torch.zeros(1), torch.ones(1), torch.zeros(1, dtype=torch.long), LossConfig(mismatch="truncated"),
        sampler_logp=torch.tensor([math.log(0.8)]),
    )  # fmt: skip
    assert result.loss.item() == pytest.approx(-1.28 * 1.25)
    with pytest.raises(ValueError, match="sampler"):
        token_loss(logp, logp, logp, torch.zeros(1, dtype=torch.long), LossConfig(mismatch="masked"))


def test_mismatch_sums() -> None:
    both = mismatch(torch.tensor([math.log(2.0)]), torch.zeros(1)) + mismatch(torch.zeros(1), torch.zeros(1))
    assert both.tokens == 2
    assert both.weight_sum == pytest.approx(3.0)
    assert both.kl_sum == pytest.approx(2 - math.log(2) - 1)
    assert both.max_delta == pytest.approx(math.log(2))
    assert mismatch(torch.zeros(0), torch.zeros(0)) == NO_MISMATCH


def naive(losses: list[list[float]], groups: list[int], aggregation: Aggregation, longest: int) -> float:
    """The definitions of losses, word by word, on lists."""
    rows = [(loss, group) for loss, group in zip(losses, groups, strict=True) if loss]
    if not rows:
        return 0.0
    tokens = [value for loss, _ in rows for value in loss]
    if aggregation == "token-mean":
        return sum(tokens) / len(tokens)
    if aggregation == "seq-mean-token-mean":
        return sum(sum(loss) / len(loss) for loss, _ in rows) / len(rows)
    if aggregation == "seq-mean-token-sum":
        return sum(tokens) / len(rows)
    if aggregation == "constant":
        return sum(tokens) / (len(rows) * longest)
    means = []
    for name in {group for _, group in rows}:
        own = [value for loss, group in rows if group == name for value in loss]
        means.append(sum(own) / len(own))
    return sum(means) / len(means)


@given(
    st.lists(st.tuples(st.lists(st.floats(-3, 3), max_size=6), st.integers(0, 3)), max_size=8),
    st.sampled_from(AGGREGATIONS),
    st.randoms(use_true_random=False),
)
def test_weights_are_the_aggregation_for_any_split_and_order(
    rows: list[tuple[list[float], int]], aggregation: Aggregation, rng: Any
) -> None:
    losses = [loss for loss, _ in rows]
    groups = [group for _, group in rows]
    weights = sequence_weights([len(loss) for loss in losses], groups, aggregation, constant_length=7)
    expected = naive(losses, groups, aggregation, 7)
    assert sum(w * sum(loss) for w, loss in zip(weights, losses, strict=True)) == pytest.approx(expected, abs=1e-9)
    order = list(range(len(rows)))
    rng.shuffle(order)
    shuffled = sequence_weights(
        [len(losses[place]) for place in order], [groups[place] for place in order], aggregation, constant_length=7
    )
    assert shuffled == pytest.approx([weights[place] for place in order])


def test_paper_aggregation_by_hand() -> None:
    # Groups of 3 + 1 and of 2 tokens: 1 / (2 · 4) and 1 / (2 · 2); a row without tokens is not there at all.
    assert sequence_weights([3, 1, 2, 0], [0, 0, 1, 2], "group-token-mean") == [0.125, 0.125, 0.25, 0.0]


@pytest.mark.parametrize(
    "wrong",
    [
        {"aggregation": "constant"},
        {"dual_clip": 0.5},
        {"clip_low": 0.0},
        {"objective": "gspo"},
        {"mismatch_cap": 0.5},
    ],
)
def test_impossible_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        LossConfig(**wrong)
