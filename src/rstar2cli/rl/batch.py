"""Kept trajectories → tensors, and the loss of one micro-batch of them (see :mod:`rstar2cli.training.loop`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rstar2cli.core.errors import DataError
from rstar2cli.policy.packing import MicroBatch, TrainSequence
from rstar2cli.records import Trajectory
from rstar2cli.rl.config import LossConfig
from rstar2cli.rl.loss import NO_MISMATCH, Mismatch, mismatch, sequence_weights, token_loss
from rstar2cli.rl.selection import Kept
from rstar2cli.training.parallel import Parallel


@dataclass(frozen=True, kw_only=True)
class RlBatch:
    """What one optimizer step trains on. S sequences, T tokens that the model wrote, in order."""

    sequences: list[TrainSequence]
    """Prompt and response; counted where the model wrote."""
    advantage: Tensor
    """(S,) float32."""
    weight: Tensor
    """(S,) float32: factor of each token's loss, denominators of the whole step included."""
    sampler: Tensor
    """(T,) float32 log-probs under the distribution sampled from."""

    @property
    def tokens(self) -> int:
        """Real tokens, prompts included."""
        return sum(len(sequence.ids) for sequence in self.sequences)


def make_batch(kept: Sequence[Kept], loss: LossConfig) -> RlBatch:
    """The batch of one optimizer step. Raises ``DataError`` on a trajectory whose columns do not fit together."""
    sequences = [_sequence(item.trajectory) for item in kept]
    weights = sequence_weights(
        [sequence.n_masked for sequence in sequences],
        [item.group for item in kept],
        loss.aggregation,
        constant_length=loss.constant_length,
    )
    sampler = [value for item in kept for value in _sampler(item.trajectory)]
    return RlBatch(
        sequences=sequences,
        advantage=torch.tensor([item.advantage for item in kept], dtype=torch.float32),
        weight=torch.tensor(weights, dtype=torch.float32),
        sampler=torch.tensor(sampler, dtype=torch.float32),
    )


def split_by_group(kept: Sequence[Kept], parts: int) -> list[list[Kept]]:
    """At most ``parts`` mini-batches of whole groups, as even in groups as can be; none is empty."""
    groups = sorted({item.group for item in kept})
    place = {group: index * min(parts, len(groups)) // len(groups) for index, group in enumerate(groups)}
    mini: list[list[Kept]] = [[] for _ in range(min(parts, len(groups)))]
    for item in kept:
        mini[place[item.group]].append(item)
    return mini


@dataclass(kw_only=True)
class LossSums:
    """Figures of an optimizer step, summed over its micro-batches."""

    tokens: int = 0
    """Tokens that the model wrote."""
    clipped: int = 0
    """Those whose clipped branch was the larger."""
    nll: float = 0.0
    """Σ −log π."""
    mismatch: Mismatch = NO_MISMATCH
    """Trainer's old log-probs against the sampler's (off policy: its present ones)."""

    def over_ranks(self, parallel: Parallel, device: torch.device) -> LossSums:
        """The sums of all ranks together."""
        own = self.mismatch
        largest = {f"largest_{rank}": own.max_delta * (rank == parallel.rank) for rank in range(parallel.world)}
        values: dict[str, float] = {"tokens": self.tokens, "clipped": self.clipped, "nll": self.nll}
        values |= {"compared": own.tokens, "weight": own.weight_sum, "kl": own.kl_sum, **largest}
        total = parallel.sum_numbers(values, device)
        return LossSums(
            tokens=round(total["tokens"]),
            clipped=round(total["clipped"]),
            nll=total["nll"],
            mismatch=Mismatch(
                tokens=round(total["compared"]),
                weight_sum=total["weight"],
                kl_sum=total["kl"],
                max_delta=max(total[name] for name in largest),
            ),
        )

    def metrics(self) -> dict[str, float]:
        """`clip_fraction` and `entropy` (mean −log π of the tokens sampled: its estimate on policy)."""
        if self.tokens == 0:
            return {}
        return {"clip_fraction": self.clipped / self.tokens, "entropy": self.nll / self.tokens}


def micro_loss(
    logp: Tensor, micro: MicroBatch, batch: RlBatch, config: LossConfig, sums: LossSums, *, old: Tensor | None
) -> Tensor:
    """The micro-batch's share of the batch's loss, a scalar to be added up over micro-batches; fills ``sums``.

    ``logp``: (t,) log-probs of the micro-batch's counted tokens. ``old``: (T,) those of the whole batch
    under the policy that the ratio is taken against; null when that is the present one.
    """
    device = logp.device
    sampler = batch.sampler[micro.flat].to(device)
    before = logp.detach() if old is None else old[micro.flat].to(device)
    sequence = micro.sequence
    advantage = batch.advantage[sequence].to(device)
    result = token_loss(logp, before, advantage, sequence.to(device), config, sampler_logp=sampler)
    sums.tokens += logp.numel()
    sums.clipped += int(result.clipped.sum())
    sums.nll -= float(logp.detach().sum())
    # off policy the sampler is the old policy: what is worth knowing is how far the present one has moved
    trainer = logp.detach() if old is batch.sampler else before
    sums.mismatch = sums.mismatch + mismatch(trainer, sampler)
    return (result.loss * batch.weight[sequence].to(device)).sum()


def _sequence(trajectory: Trajectory) -> TrainSequence:
    if len(trajectory.response_ids) != len(trajectory.mask) or len(trajectory.mask) != len(trajectory.logprobs):
        raise DataError(
            f"trajectory {trajectory.id}: {len(trajectory.response_ids)} response tokens, "
            f"{len(trajectory.mask)} mask values and {len(trajectory.logprobs)} log-probs"
        )
    if not trajectory.prompt_ids:
        raise DataError(f"trajectory {trajectory.id}: an empty prompt")
    return TrainSequence(
        ids=[*trajectory.prompt_ids, *trajectory.response_ids],
        mask=[False] * len(trajectory.prompt_ids) + list(trajectory.mask),
    )


def _sampler(trajectory: Trajectory) -> list[float]:
    values = [value for value, own in zip(trajectory.logprobs, trajectory.mask, strict=True) if own]
    if any(value is None for value in values):
        raise DataError(f"trajectory {trajectory.id}: a token that the model wrote has no log-prob")
    return [float(value) for value in values if value is not None]
