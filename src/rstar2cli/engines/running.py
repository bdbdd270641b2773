"""Rows in flight: prompts computed and tokens taken one a step, rows that are done told apart."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future

import numpy as np
import numpy.typing as npt
import torch

from rstar2cli.engines.base import Completion, Request
from rstar2cli.engines.batch import RowInput, make_batch
from rstar2cli.engines.decoder import Decoder
from rstar2cli.engines.sampler import draw, uniforms
from rstar2cli.engines.slots import SlotCache

_PREFILL_TOKENS = 4096
"""Most prompt tokens of one forward pass."""


class Row:
    """One request being generated."""

    def __init__(self, request: Request, future: Future[Completion] | None = None) -> None:
        self.request = request
        self.future = future
        self.prompt: npt.NDArray[np.int64] = np.asarray(request.prompt_ids, dtype=np.int64)
        self.slot = -1
        self.ids: list[int] = []
        self.logprobs: list[float] = []
        self._uniforms = uniforms(request.seed)
        self._stops = frozenset(request.stop_ids)

    def uniform(self) -> float:
        """The number that decides the next token."""
        return float(self._uniforms.random())

    def take(self, token: int, logprob: float) -> None:
        """Append a drawn token."""
        self.ids.append(token)
        self.logprobs.append(logprob)

    @property
    def stopped(self) -> bool:
        """Whether the last token is a stop token."""
        return bool(self.ids) and self.ids[-1] in self._stops

    @property
    def done(self) -> bool:
        """Whether nothing more is to be drawn."""
        return self.stopped or len(self.ids) >= self.request.max_tokens

    @property
    def next_input(self) -> RowInput:
        """The last drawn token, whose keys and values are computed with the next step."""
        return RowInput(slot=self.slot, start=len(self.prompt) + len(self.ids) - 1, ids=self.ids[-1:])

    def cached_ids(self) -> npt.NDArray[np.int64]:
        """Tokens whose keys and values are in the slot: all but the last drawn one."""
        return np.concatenate([self.prompt, np.asarray(self.ids[:-1], dtype=np.int64)])

    def completion(self, policy: str) -> Completion:
        """The result."""
        finish = "stop" if self.stopped else "length"
        return Completion(ids=self.ids, logprobs=self.logprobs, finish=finish, policy=policy)  # type: ignore[arg-type]


def step(running: Sequence[Row], fresh: Sequence[Row], decoder: Decoder, cache: SlotCache) -> list[Row]:
    """One token for every running row and the first one of every fresh row; the rows that are done with it.

    Prompts are computed in the same pass as the running rows' tokens: reading the weights is what a
    small pass costs. A prompt that another fresh row computes waits for it and copies.
    """
    now, waiting = _first_of_each_prompt(fresh)
    done = _pass(running, now, decoder, cache)
    while waiting:
        now, waiting = _first_of_each_prompt(waiting)
        done += _pass([], now, decoder, cache)
    return done


def _pass(running: Sequence[Row], fresh: Sequence[Row], decoder: Decoder, cache: SlotCache) -> list[Row]:
    ordered = sorted(running, key=lambda row: row.slot)
    inputs = [row.next_input for row in ordered]
    longest = max([given.start + 1 for given in inputs] + [len(row.prompt) + 1 for row in fresh], default=0)
    cache.reserve(cache.slots, longest)
    for row in fresh:
        row.slot, shared = cache.take(row.prompt)
        inputs.append(RowInput(slot=row.slot, start=shared, ids=row.prompt[shared:].tolist()))
    logits = decoder.forward(make_batch(inputs, dtype=decoder.dtype, device=decoder.device), cache)
    for row in fresh:
        cache.note(row.slot, row.prompt)
    return advance([*ordered, *fresh], logits)


def advance(rows: Sequence[Row], logits: torch.Tensor) -> list[Row]:
    """Draw a token for each row from ``logits`` [rows, V]; the rows that are done."""
    uniform = torch.tensor([row.uniform() for row in rows], dtype=torch.float64)
    tokens, logprobs = draw(logits, uniform, [row.request.sampling for row in rows])
    for row, token, logprob in zip(rows, tokens.tolist(), logprobs.tolist(), strict=True):
        row.take(token, logprob)
    return [row for row in rows if row.done]


def _first_of_each_prompt(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Rows to compute in this pass (distinct prompts, up to a number of tokens), and the rest.

    Rows whose prompt another one computes go together in a later pass, when it can be copied.
    """
    now: list[Row] = []
    later: list[Row] = []
    seen: set[bytes] = set()
    tokens = 0
    for row in rows:
        key = row.prompt.tobytes()
        if key in seen or (now and tokens + len(row.prompt) > _PREFILL_TOKENS):
            later.append(row)
            continue
        seen.add(key)
        now.append(row)
        tokens += len(row.prompt)
    return now, later
