"""Token bookkeeping of a growing trajectory: what the model wrote and what was put in between."""

from __future__ import annotations

from collections.abc import Sequence


class TokenTrail:
    """Prompt and response tokens with their mask and log-probs, in step by construction."""

    def __init__(self, prompt_ids: Sequence[int]) -> None:
        self.prompt_ids = list(prompt_ids)
        """Tokens of the prompt, the first assistant header included."""
        self.response_ids: list[int] = []
        """All tokens after the prompt."""
        self.mask: list[bool] = []
        """True where the model wrote the response token."""
        self.logprobs: list[float | None] = []
        """One per response token; null where the mask is false."""
        self._turns = 0

    @property
    def ids(self) -> list[int]:
        """Prompt and response: the prompt of the next turn."""
        return self.prompt_ids + self.response_ids

    def __len__(self) -> int:
        """Tokens so far, prompt included."""
        return len(self.prompt_ids) + len(self.response_ids)

    @property
    def n_turns(self) -> int:
        """Turns the model took."""
        return self._turns

    @property
    def n_model_tokens(self) -> int:
        """Tokens the model wrote."""
        return sum(self.mask)

    def add_turn(self, ids: Sequence[int], logprobs: Sequence[float]) -> None:
        """Append one generation of the model, its stop token included. One log-prob per token."""
        if len(ids) != len(logprobs):
            raise ValueError(f"{len(ids)} tokens with {len(logprobs)} log-probs")
        self._turns += 1
        self.response_ids += ids
        self.mask += [True] * len(ids)
        self.logprobs += logprobs

    def add_context(self, ids: Sequence[int]) -> None:
        """Append tokens that the model did not write (tool responses, headers)."""
        self.response_ids += ids
        self.mask += [False] * len(ids)
        self.logprobs += [None] * len(ids)
