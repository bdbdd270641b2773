"""What one forward pass computes: packed tokens of many rows, and how their attention is cut.

Tokens of all rows lie one after the other, without padding: linear layers run once over
them. Attention runs per span: a stretch of rows whose slots are neighbours (one new token
each), or the several new tokens of a single row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

SPAN_ROWS = 8
"""Most rows of one span: a span is as long as its longest row, so short spans waste less."""


@dataclass(frozen=True, kw_only=True)
class RowInput:
    """New tokens of one row."""

    slot: int
    """Its slot in the cache."""
    start: int
    """Tokens of it that are in the cache already."""
    ids: Sequence[int]
    """Tokens to compute."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """One call of the attention."""

    first: int
    """First packed token."""
    last: int
    """One past its last packed token."""
    slot: int
    """First slot."""
    rows: int
    """Neighbouring slots; 1 for the many tokens of a single row."""
    length: int
    """Keys to look at."""
    mask: torch.Tensor | None
    """Additive mask: [rows, 1, 1, length] over rows, [1, 1, tokens, length] within a row; null = see ``causal``."""
    causal: bool
    """Whether the plain causal mask holds (a row from its first token on)."""


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Input of :meth:`Decoder.forward`."""

    ids: torch.Tensor
    """[N] token ids."""
    positions: torch.Tensor
    """[N] positions within their rows."""
    slots: torch.Tensor
    """[N] slots of their rows."""
    last: torch.Tensor | None
    """[rows] index of each row's last token; null where every token is one."""
    spans: list[Span]
    """How attention is cut."""


def make_batch(
    rows: Sequence[RowInput], *, dtype: torch.dtype, device: torch.device, span_rows: int = SPAN_ROWS
) -> Batch:
    """Pack the rows. Rows with one token each are best given in the order of their slots."""
    ids = [token for row in rows for token in row.ids]
    positions = [row.start + place for row in rows for place in range(len(row.ids))]
    slots = [row.slot for row in rows for _ in row.ids]
    last = None
    if len(ids) != len(rows):
        ends = torch.tensor([len(row.ids) for row in rows]).cumsum(0) - 1
        last = ends.to(device)
    return Batch(
        ids=torch.tensor(ids, device=device),
        positions=torch.tensor(positions, device=device),
        slots=torch.tensor(slots, device=device),
        last=last,
        spans=_spans(rows, dtype, device, span_rows),
    )


def _spans(rows: Sequence[RowInput], dtype: torch.dtype, device: torch.device, span_rows: int) -> list[Span]:
    spans: list[Span] = []
    place = index = 0
    while index < len(rows):
        count = len(rows[index].ids)
        if count > 1:
            spans.append(_row_span(rows[index], place, dtype, device))
            place, index = place + count, index + 1
            continue
        end = index + 1
        while (
            end < len(rows)
            and end - index < span_rows
            and len(rows[end].ids) == 1
            and rows[end].slot == rows[end - 1].slot + 1
        ):
            end += 1
        spans.append(_neighbours(rows[index:end], place, dtype, device))
        place, index = place + end - index, end
    return spans


def _row_span(row: RowInput, place: int, dtype: torch.dtype, device: torch.device) -> Span:
    count = len(row.ids)
    length = row.start + count
    mask = None
    if row.start:
        seen = torch.arange(length, device=device) <= torch.arange(row.start, length, device=device)[:, None]
        mask = _additive(seen, dtype)[None, None]
    return Span(first=place, last=place + count, slot=row.slot, rows=1, length=length, mask=mask, causal=row.start == 0)


def _neighbours(rows: Sequence[RowInput], place: int, dtype: torch.dtype, device: torch.device) -> Span:
    lengths = [row.start + 1 for row in rows]
    longest = max(lengths)
    mask = None
    if min(lengths) != longest:
        seen = torch.arange(longest, device=device) < torch.tensor(lengths, device=device)[:, None]
        mask = _additive(seen, dtype)[:, None, None]
    return Span(
        first=place,
        last=place + len(rows),
        slot=rows[0].slot,
        rows=len(rows),
        length=longest,
        mask=mask,
        causal=False,
    )


def _additive(seen: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return torch.zeros(seen.shape, dtype=dtype, device=seen.device).masked_fill_(~seen, -torch.inf)
