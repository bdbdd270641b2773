"""The protocol that every generation engine speaks.

Token ids in, token ids and log-probs out, asynchronously and in any order. The
log-probs are those of the distribution that was sampled from (after temperature,
top-p and top-k), never the raw ones. Imports no engine and no torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How tokens are drawn."""

    temperature: float = 1.0
    """Divides the logits; 0 = greedy."""
    top_p: float = 1.0
    """Nucleus: smallest set of tokens with this much probability."""
    top_k: int = 0
    """Only the k likeliest tokens; 0 = all."""

    def __post_init__(self) -> None:
        if self.temperature < 0:
            raise ValueError(f"temperature must not be negative, not {self.temperature}")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must be over 0 and at most 1, not {self.top_p}")
        if self.top_k < 0:
            raise ValueError(f"top_k must not be negative, not {self.top_k}")


@dataclass(frozen=True, kw_only=True)
class Request:
    """One generation."""

    prompt_ids: Sequence[int]
    """All tokens so far."""
    max_tokens: int
    """Most tokens to generate (at least 1)."""
    stop_ids: Sequence[int]
    """Tokens that end generation; the one generated is included in the result."""
    seed: int
    """Seed of this request alone: its tokens do not depend on what runs beside it (up to rounding)."""
    sampling: Sampling
    """How tokens are drawn."""


@dataclass(frozen=True, kw_only=True)
class Completion:
    """What one request gave."""

    ids: list[int]
    """Generated tokens, the stop token included."""
    logprobs: list[float]
    """One per generated token, of the distribution sampled from."""
    finish: Literal["stop", "length"]
    """Whether a stop token or the limit ended it."""
    policy: str
    """Version of the weights that wrote it."""


class Engine(Protocol):
    """A running model. Methods are safe to call from any thread."""

    @property
    def version(self) -> str:
        """Name of the weights that are loaded: a digest, or `base+run@update`."""
        ...

    @property
    def capacity_tokens(self) -> int:
        """KV-cache tokens that fit at once (prompt and response of all running requests)."""
        ...

    @property
    def max_length(self) -> int:
        """Longest prompt and response together, in tokens."""
        ...

    def submit(self, request: Request) -> Future[Completion]:
        """Queue one generation. A request that can never fit fails with ``UsageError``."""
        ...

    def generate_wave(self, requests: Sequence[Request | None]) -> list[Completion | None]:
        """Deterministic mode: generate all together in fixed shapes; ``None`` is an empty row.

        The tokens of a row depend on its request and the number of rows, on nothing else.
        Engines that can't promise this raise ``EnvironmentMissing``.
        """
        ...

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]], version: str) -> None:
        """Replace the weights when no request is running, drop every cache, take the new version.

        Names are those of the checkpoint (`model.embed_tokens.weight`, …). A tied head that
        is not named follows its embedding. Raises ``DataError`` on unknown or missing names.
        """
        ...

    def idle(self) -> None:
        """Nothing will be asked for a while: give back the memory that only running requests need, as far as possible.

        Waits for what is running. The next request takes the memory again.
        """
        ...

    def close(self) -> None:
        """Stop and free everything; outstanding requests are cancelled."""
        ...
