"""The policy-gradient objective on tokens that the model wrote: pure functions on flat tensors.

Shapes: T = tokens with mask 1 of a micro-batch in any order, S = sequences of the whole
batch. Tool output, prompts and padding never get here. Token losses are turned into one
number by weights per sequence whose denominators cover the *whole* batch, so that neither
the split into micro-batches nor the order of sequences matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rstar2cli.rl.config import Aggregation, LossConfig

MAX_DELTA = 20.0
"""Bound on |log π − log π_old| before exp: beyond it the ratio says nothing and could overflow."""


@dataclass(frozen=True, kw_only=True)
class TokenLoss:
    """Loss per token, before aggregation."""

    loss: Tensor
    """(T,) differentiable in log π."""
    clipped: Tensor
    """(T,) bool: the clipped branch was the larger."""


def sequence_weights(
    token_counts: Sequence[int],
    groups: Sequence[int],
    aggregation: Aggregation,
    *,
    constant_length: int = 0,
) -> list[float]:
    """Weight of each token's loss by its sequence: the batch loss is Σ_s weight_s · Σ_t loss_st.

    ``token_counts`` and ``groups`` have one entry per sequence of the **whole** batch, over all
    micro-batches and ranks. Sequences without a token count nowhere and have weight 0.
    """
    rows = [place for place, count in enumerate(token_counts) if count > 0]
    weights = [0.0] * len(token_counts)
    if aggregation == "group-token-mean":
        tokens: dict[int, int] = {}
        for place in rows:
            tokens[groups[place]] = tokens.get(groups[place], 0) + token_counts[place]
        for place in rows:
            weights[place] = 1.0 / (len(tokens) * tokens[groups[place]])
        return weights
    total = sum(token_counts[place] for place in rows)
    for place in rows:
        if aggregation == "token-mean":
            weights[place] = 1.0 / total
        elif aggregation == "seq-mean-token-mean":
            weights[place] = 1.0 / (len(rows) * token_counts[place])
        elif aggregation == "seq-mean-token-sum":
            weights[place] = 1.0 / len(rows)
        else:
            weights[place] = 1.0 / (len(rows) * constant_length)
    return weights


def token_loss(
    logp: Tensor,
    old_logp: Tensor,
    advantage: Tensor,
    sequence: Tensor,
    config: LossConfig,
    *,
    sampler_logp: Tensor | None = None,
) -> TokenLoss:
    """The objective on each token.

    ``logp``, ``old_logp``, ``advantage``: (T,), ``sequence``: (T,) integers, the sequence of each
    token (all tokens of a sequence must be in the call; only ``gspo`` looks). ``sampler_logp``: (T,),
    needed when ``config.mismatch`` is on. ``old_logp`` and ``sampler_logp`` carry no gradient.
    """
    old_logp = old_logp.detach()
    delta = (logp - old_logp).clamp(-MAX_DELTA, MAX_DELTA)
    if config.objective == "cispo":
        result = _cispo(logp, delta, advantage, config)
    else:
        if config.objective == "gspo":
            delta = _sequence_delta(delta, logp, sequence)
        result = _clip(delta.exp(), advantage, config)
    if config.mismatch == "none":
        return result
    if sampler_logp is None:
        raise ValueError("mismatch weights need the sampler's log-probs")
    return TokenLoss(loss=result.loss * mismatch_weight(old_logp, sampler_logp, config), clipped=result.clipped)


def mismatch_weight(old_logp: Tensor, sampler_logp: Tensor, config: LossConfig) -> Tensor:
    """(T,) detached weight π_old(trainer) / π_sampler, truncated or masked as configured."""
    weight = (old_logp - sampler_logp).detach().clamp(-MAX_DELTA, MAX_DELTA).exp()
    if config.mismatch == "truncated":
        return weight.clamp(max=config.mismatch_cap)
    inside = (weight >= config.mismatch_low) & (weight <= config.mismatch_cap)
    return weight * inside


@dataclass(frozen=True, kw_only=True)
class Mismatch:
    """How far the trainer's old log-probs are from the sampler's: sums over tokens, which add up over micro-batches."""

    tokens: int
    """Tokens compared."""
    weight_sum: float
    """Σ π_old(trainer) / π_sampler."""
    kl_sum: float
    """Σ exp(d) − d − 1 with d = log π_old(trainer) − log π_sampler: KL(sampler‖trainer), never negative."""
    max_delta: float
    """Largest |d|."""

    def __add__(self, other: Mismatch) -> Mismatch:
        return Mismatch(
            tokens=self.tokens + other.tokens,
            weight_sum=self.weight_sum + other.weight_sum,
            kl_sum=self.kl_sum + other.kl_sum,
            max_delta=max(self.max_delta, other.max_delta),
        )


NO_MISMATCH = Mismatch(tokens=0, weight_sum=0.0, kl_sum=0.0, max_delta=0.0)


def mismatch(old_logp: Tensor, sampler_logp: Tensor) -> Mismatch:
    """Compare (T,) log-probs of the trainer with those of the sampler."""
    if old_logp.numel() == 0:
        return NO_MISMATCH
    raw = (old_logp.detach() - sampler_logp).double()
    delta = raw.clamp(-MAX_DELTA, MAX_DELTA)
    weight = delta.exp()
    return Mismatch(
        tokens=raw.numel(),
        weight_sum=float(weight.sum()),
        kl_sum=float((weight - delta - 1).sum()),
        max_delta=float(raw.abs().max()),
    )


def _clip(ratio: Tensor, advantage: Tensor, config: LossConfig) -> TokenLoss:
    plain = -advantage * ratio
    bounded = -advantage * ratio.clamp(1 - config.clip_low, 1 + config.clip_high)
    loss = torch.maximum(plain, bounded)
    clipped = bounded > plain
    if config.dual_clip:
        ceiling = -advantage * config.dual_clip
        loss = torch.where(advantage < 0, torch.minimum(loss, ceiling), loss)
    return TokenLoss(loss=loss, clipped=clipped)


def _cispo(logp: Tensor, delta: Tensor, advantage: Tensor, config: LossConfig) -> TokenLoss:
    ratio = delta.detach().exp()
    weight = ratio.clamp(1 - config.clip_low, 1 + config.clip_high)
    return TokenLoss(loss=-weight * advantage * logp, clipped=weight != ratio)


def _sequence_delta(delta: Tensor, logp: Tensor, sequence: Tensor) -> Tensor:
    """(T,) log s of GSPO: the mean of Δ over the sequence in value, each token's own log π in gradient."""
    _, place = torch.unique(sequence, return_inverse=True)
    rows = int(place.max()) + 1 if place.numel() else 0
    sums = delta.new_zeros(rows).index_add(0, place, delta.detach())
    counts = delta.new_zeros(rows).index_add(0, place, torch.ones_like(delta))
    return (sums / counts)[place] + logp - logp.detach()
