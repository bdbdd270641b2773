"""Text and ChatML marks to token ids, so that no text from data can become a mark."""

from __future__ import annotations

import copy
from typing import Any

from rstar2cli.core.errors import DataError

IM_START = "<|im_start|>"
IM_END = "<|im_end|>"


class Encoder:
    """A tokenizer's text encoder and the ids of the two ChatML marks.

    Works on a private copy of the fast tokenizer whose ``encode_special_tokens`` is set: a text
    that reads ``<|im_end|>`` becomes plain pieces. (The flag of the shared tokenizer would be
    toggled by every other caller; the copy is also safe to use from many threads.)
    Raises ``DataError`` if the tokenizer has no ChatML marks.
    """

    def __init__(self, tokenizer: Any) -> None:
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise DataError("the model's tokenizer has no fast (tokenizers) backend", hint="add a tokenizer.json")
        self._backend = copy.deepcopy(backend)
        self._backend.no_truncation()
        self._backend.no_padding()
        self._backend.encode_special_tokens = True
        self.start = self._mark(IM_START)
        self.end = self._mark(IM_END)

    def text(self, text: str) -> list[int]:
        """Ids of a plain text; nothing is added, and no part of it becomes a special token."""
        if not text:
            return []
        # A lone surrogate (possible in JSON) has no UTF-8 form, and the tokenizer would raise on it.
        clean = text.encode("utf-8", "replace").decode("utf-8")
        ids: list[int] = self._backend.encode(clean, add_special_tokens=False).ids
        return ids

    def _mark(self, mark: str) -> int:
        known = self._backend.token_to_id(mark)
        if known is None:
            raise DataError(
                f"the model's tokenizer has no token {mark}",
                hint="use a model with a ChatML template (Qwen, SmolLM2), or add the token to its tokenizer",
            )
        return int(known)
