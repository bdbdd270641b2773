"""Sequences of many lengths → micro-batches that waste little.

Sorted by length, cut by a budget of tokens, padded on the right to the longest row of the
micro-batch only. Attention is causal, so right padding needs no mask. What all rows of a
micro-batch begin with (the instructions, a group's problem) can be computed once for all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

SHARED_AT_LEAST = 16
"""Shorter common beginnings are not worth a layout of their own."""


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

    @property
    def shareable(self) -> int:
        """Tokens before the first counted one: as many may be computed together with other sequences."""
        return self.mask.index(True) if any(self.mask) else len(self.ids)


@dataclass(frozen=True, kw_only=True)
class MicroBatch:
    """Rows that go through the model together. B rows, L = the longest, P = shared prefix, T = tokens that count."""

    rows: list[int]
    """Places of its sequences in the list that was packed."""
    ids: Tensor
    """(B, L) int64, padded on the right with 0; with a shared prefix (1, P + B·(L-P)): it, then each row's rest."""
    positions: Tensor | None
    """(1, P + B·(L-P)) int64: positions within the rows; null without a shared prefix, where they are 0 … L-1."""
    prefix: int
    """P: first tokens of every row, computed once; 0 = nothing is shared."""
    places: Tensor
    """(T,) int64 into the flattened ``ids``: where the model predicts each counted token."""
    targets: Tensor
    """(T,) int64: the counted tokens, row after row, in order of time."""
    sequence: Tensor
    """(T,) int64: for each counted token the place of its sequence in the list that was packed."""
    flat: Tensor
    """(T,) int64: for each counted token its place among the counted tokens of the whole list in order."""
    n_tokens: int
    """Real tokens, padding aside; a shared prefix counts in every row."""

    def to(self, device: torch.device) -> MicroBatch:
        """The same on another device."""
        return replace(
            self,
            ids=self.ids.to(device),
            positions=None if self.positions is None else self.positions.to(device),
            places=self.places.to(device),
            targets=self.targets.to(device),
            sequence=self.sequence.to(device),
            flat=self.flat.to(device),
        )


def pack(sequences: list[TrainSequence], budget: int, *, share_up_to: int = 0) -> list[MicroBatch]:
    """Micro-batches of at most ``budget`` computed tokens each (a longer row goes alone), longest rows first.

    Sequences in which nothing counts are left out: they have no gradient. ``share_up_to``: micro-batches
    of rows up to this length compute what all their rows begin with once (0 = never); the model's attention
    must know of it (:mod:`rstar2cli.policy.attention`).
    """
    starts = _starts(sequences)
    order = sorted((i for i, s in enumerate(sequences) if any(s.mask)), key=lambda i: (-len(sequences[i].ids), i))
    batches: list[list[int]] = []
    prefix = 0  # of the last batch
    for place in order:
        if batches:
            first = sequences[batches[-1][0]]
            longest = len(first.ids)
            common = min(prefix, _common(first.ids, sequences[place].ids, min(prefix, sequences[place].shareable)))
            shared = common if common >= SHARED_AT_LEAST else 0
            if shared + (len(batches[-1]) + 1) * (longest - shared) <= budget:
                batches[-1].append(place)
                prefix = common
                continue
        batches.append([place])
        prefix = sequences[place].shareable if len(sequences[place].ids) <= share_up_to else 0
    return [_micro_batch(sequences, rows, starts, share=share_up_to) for rows in batches]


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


def _common(a: list[int], b: list[int], most: int) -> int:
    """Length of the common beginning, at most ``most``."""
    if a[:most] == b[:most]:
        return most
    return next(place for place in range(most) if a[place] != b[place])


def _shared_prefix(sequences: list[TrainSequence], rows: list[int], share_up_to: int) -> int:
    first = sequences[rows[0]]
    if len(rows) < 2 or len(first.ids) > share_up_to:
        return 0
    common = first.shareable
    for row in rows[1:]:
        common = _common(first.ids, sequences[row].ids, min(common, sequences[row].shareable))
    return common if common >= SHARED_AT_LEAST else 0


def _micro_batch(sequences: list[TrainSequence], rows: list[int], starts: list[int], *, share: int) -> MicroBatch:
    prefix = _shared_prefix(sequences, rows, share)
    rest = max(len(sequences[row].ids) for row in rows) - prefix
    ids = torch.zeros(len(rows), rest, dtype=torch.int64)
    places, targets, sequence, flat = [], [], [], []
    for line, row in enumerate(rows):
        item = sequences[row]
        whole = torch.tensor(item.ids)
        ids[line, : len(whole) - prefix] = whole[prefix:]
        counted = torch.tensor(item.mask).nonzero()[:, 0]
        before = counted - 1
        # the prefix lies once, before the first row: its last token predicts the first one of every row
        places.append(torch.where(before < prefix, before, before + line * rest))
        targets.append(whole[counted])
        sequence.append(torch.full_like(counted, row))
        flat.append(torch.arange(len(counted)) + starts[row])
    positions = None
    if prefix:
        ids = torch.cat([torch.tensor(sequences[rows[0]].ids[:prefix]), ids.flatten()])[None]
        positions = torch.cat([torch.arange(prefix), torch.arange(prefix, prefix + rest).repeat(len(rows))])[None]
    return MicroBatch(
        rows=rows,
        ids=ids,
        positions=positions,
        prefix=prefix,
        places=torch.cat(places),
        targets=torch.cat(targets),
        sequence=torch.cat(sequence),
        flat=torch.cat(flat),
        n_tokens=sum(len(sequences[row].ids) for row in rows),
    )
