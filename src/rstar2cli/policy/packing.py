"""Sequences of many lengths → micro-batches that waste little.

Sorted by length, cut by a budget of tokens, padded on the right to the longest row of the
micro-batch only. Attention is causal, so right padding needs no mask.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class TrainSequence:
    """Tokens of one conversation or trajectory, and which of them count."""

    ids: list[int]
    """All tokens, the prompt included."""
    mask: list[bool]
    """True where the token counts; the first token has nothing before it and never counts."""

    def __post_init__(self) -> None:
        if len(self.ids) != len(self.mask):
            raise ValueError(f"{len(self.ids)} tokens but {len(self.mask)} mask values")
        if self.mask and self.mask[0]:
            raise ValueError("the first token can't count: nothing predicts it")

    @property
    def n_masked(self) -> int:
        """Tokens that count."""
        return sum(self.mask)


@dataclass(frozen=True, kw_only=True)
class MicroBatch:
    """Rows that go through the model together. B rows, L = the longest, T = tokens that count."""

    rows: list[int]
    """Places of its sequences in the list that was packed."""
    ids: Tensor
    """(B, L) int64, padded on the right with 0."""
    places: Tensor
    """(T,) int64 into the flat (B·L) positions: where the model predicts each counted token."""
    targets: Tensor
    """(T,) int64: the counted tokens, row after row, in order of time."""
    sequence: Tensor
    """(T,) int64: for each counted token the place of its sequence in the list that was packed."""
    flat: Tensor
    """(T,) int64: for each counted token its place among the counted tokens of the whole list in order."""
    n_tokens: int
    """Real tokens, padding aside."""

    def to(self, device: torch.device) -> MicroBatch:
        """The same on another device."""
        return MicroBatch(
            rows=self.rows,
            ids=self.ids.to(device),
            places=self.places.to(device),
            targets=self.targets.to(device),
            sequence=self.sequence.to(device),
            flat=self.flat.to(device),
            n_tokens=self.n_tokens,
        )


def pack(sequences: list[TrainSequence], budget: int) -> list[MicroBatch]:
    """Micro-batches of at most ``budget`` padded tokens each (a longer row goes alone), longest rows first.

    Sequences in which nothing counts are left out: they have no gradient.
    """
    starts = _starts(sequences)
    order = sorted((i for i, s in enumerate(sequences) if any(s.mask)), key=lambda i: (-len(sequences[i].ids), i))
    batches: list[list[int]] = []
    for place in order:
        longest = len(sequences[batches[-1][0]].ids) if batches else 0
        if batches and (len(batches[-1]) + 1) * longest <= budget:
            batches[-1].append(place)
        else:
            batches.append([place])
    return [_micro_batch(sequences, rows, starts) for rows in batches]


def count_masked(sequences: Iterable[TrainSequence]) -> int:
    """Tokens that count in all sequences together: a global denominator."""
    return sum(sequence.n_masked for sequence in sequences)


def _starts(sequences: list[TrainSequence]) -> list[int]:
    """Place of each sequence's first counted token among all counted ones."""
    starts, total = [], 0
    for sequence in sequences:
        starts.append(total)
        total += sequence.n_masked
    return starts


def _micro_batch(sequences: list[TrainSequence], rows: list[int], starts: list[int]) -> MicroBatch:
    longest = max(len(sequences[row].ids) for row in rows)
    ids = torch.zeros(len(rows), longest, dtype=torch.int64)
    places, sequence, flat = [], [], []
    for line, row in enumerate(rows):
        item = sequences[row]
        ids[line, : len(item.ids)] = torch.tensor(item.ids)
        counted = torch.tensor(item.mask).nonzero()[:, 0]
        places.append(counted - 1 + line * longest)
        sequence.append(torch.full_like(counted, row))
        flat.append(torch.arange(len(counted)) + starts[row])
    where = torch.cat(places)
    return MicroBatch(
        rows=rows,
        ids=ids,
        places=where,
        targets=ids.flatten()[where + 1],
        sequence=torch.cat(sequence),
        flat=torch.cat(flat),
        n_tokens=sum(len(sequences[row].ids) for row in rows),
    )
