"""Deterministic mode: a wave of rows in lockstep, in shapes that no neighbour can change.

Every prompt is computed by itself, every step has exactly as many rows as the wave (a row
that is empty or done stays as padding), and attention runs row by row over that row's own
length. So a row's tokens depend on its request and the number of rows alone, to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from rstar2cli.engines.base import Completion, Request, Sampling
from rstar2cli.engines.batch import RowInput, make_batch
from rstar2cli.engines.decoder import Decoder
from rstar2cli.engines.running import Row
from rstar2cli.engines.sampler import draw
from rstar2cli.engines.slots import SlotCache

_PADDING = Sampling()


def run_wave(
    requests: Sequence[Request | None], decoder: Decoder, cache: SlotCache, version: str
) -> list[Completion | None]:
    """Generate the wave; what the cache held is forgotten."""
    cache.forget()
    longest = max((len(r.prompt_ids) + r.max_tokens for r in requests if r is not None), default=1)
    cache.reserve(len(requests), min(longest, 256))
    rows = [None if request is None else Row(request) for request in requests]
    _prefill(rows, decoder, cache)
    while any(row is not None and not row.done for row in rows):
        _step(rows, decoder, cache)
    cache.forget()
    return [None if row is None else row.completion(version) for row in rows]


def _prefill(rows: Sequence[Row | None], decoder: Decoder, cache: SlotCache) -> None:
    """Each distinct prompt in a pass of its own; rows that share it copy the outcome, which is the same to the bit."""
    first: dict[bytes, tuple[int, torch.Tensor]] = {}
    for slot, row in enumerate(rows):
        if row is None:
            continue
        row.slot = slot
        length = len(row.prompt)
        cache.reserve(cache.slots, length + 1)
        known = first.get(row.prompt.tobytes())
        if known is None:
            given = RowInput(slot=slot, start=0, ids=row.prompt.tolist())
            logits = decoder.forward(make_batch([given], dtype=decoder.dtype, device=decoder.device), cache)
            first[row.prompt.tobytes()] = (slot, logits)
        else:
            source, logits = known
            cache.copy(source, slot, length)
        _draw([row], logits)


def _step(rows: Sequence[Row | None], decoder: Decoder, cache: SlotCache) -> None:
    idle = RowInput(slot=cache.scratch, start=0, ids=[0])
    inputs = [idle if row is None or row.done else row.next_input for row in rows]
    cache.reserve(cache.slots, max(given.start for given in inputs) + 1)
    batch = make_batch(inputs, dtype=decoder.dtype, device=decoder.device, span_rows=1)
    _draw(rows, decoder.forward(batch, cache))


def _draw(rows: Sequence[Row | None], logits: torch.Tensor) -> None:
    active = [row is not None and not row.done for row in rows]
    numbers = [row.uniform() if row is not None and on else 0.0 for row, on in zip(rows, active, strict=True)]
    sampling = [
        row.request.sampling if row is not None and on else _PADDING for row, on in zip(rows, active, strict=True)
    ]
    tokens, logprobs = draw(logits, torch.tensor(numbers, dtype=torch.float64), sampling)
    for row, on, token, logprob in zip(rows, active, tokens.tolist(), logprobs.tolist(), strict=True):
        if row is not None and on:
            row.take(token, logprob)
