"""The key-value cache of the embedded engine: one slot a row, in one preallocated tensor a layer.

Nothing in it is moved when rows come and go. A slot that a finished row left keeps its
contents until it is needed, so that a later prompt that begins alike (the next turn, the
same problem, the same instructions) copies or continues them instead of computing them.
"""

from __future__ import annotations

import contextlib
import math
import mmap
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

_STEP = 128
_GROWTH = 1.25


class SlotCache:
    """Keys and values of each layer [slots + 1, length, 2 × kv_heads, head_dim]; the last slot is scratch.

    It begins without memory: :meth:`reserve` before the first pass.
    """

    def __init__(
        self, *, layers: int, slots: int, kv_heads: int, head_dim: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        self._shape = (kv_heads, head_dim)
        self._dtype = dtype
        self._device = device
        self.data = [self._allocate(slots, 0) for _ in range(layers)]
        """One tensor a layer: growing needs room for one of them twice, not for all."""
        self._contents: list[npt.NDArray[np.int64] | None] = [None] * slots
        self._busy = [False] * slots
        self._used = [0] * slots
        self._clock = 0

    @staticmethod
    def token_bytes(*, layers: int, kv_heads: int, head_dim: int, dtype: torch.dtype) -> int:
        """Bytes that one token takes."""
        return layers * 2 * kv_heads * head_dim * dtype.itemsize

    @property
    def slots(self) -> int:
        """Number of slots, scratch aside."""
        return len(self._busy)

    @property
    def scratch(self) -> int:
        """Slot whose contents nobody reads."""
        return len(self._busy)

    @property
    def length(self) -> int:
        """Tokens that a slot has room for now."""
        return self.data[0].shape[1]

    def copy(self, source: int, target: int, tokens: int) -> None:
        """The first tokens of one slot into another."""
        for layer in self.data:
            layer[target, :tokens] = layer[source, :tokens]

    def reserve(self, slots: int, length: int) -> None:
        """Make room for so many slots of so many tokens; what is cached stays."""
        have_slots, have_length = self.slots, self.length
        if slots <= have_slots and length <= have_length:
            return
        if length > have_length:
            length = -(-max(length, int(have_length * _GROWTH)) // _STEP) * _STEP
        for layer, old in enumerate(self.data):
            grown = self._allocate(max(slots, have_slots), max(length, have_length))
            grown[:have_slots, :have_length] = old[:have_slots]
            self.data[layer] = grown
        extra = max(slots, have_slots) - have_slots
        self._contents += [None] * extra
        self._busy += [False] * extra
        self._used += [0] * extra

    def take(self, prompt: npt.NDArray[np.int64]) -> tuple[int, int]:
        """A free slot for a row with this prompt, and how many of its tokens are already in it.

        At least the last token is left to compute. The caller makes sure that a slot is free,
        calls :meth:`note` when the rest is computed and :meth:`release` when the row is done.
        """
        source, shared = self._best_source(prompt)
        if source is not None and not self._busy[source] and shared >= self._length(source) // 2:
            slot = source  # continue in place
        else:
            slot = self._victim(source)
            if source is not None and shared:
                self.copy(source, slot, shared)
        self._busy[slot] = True
        self.note(slot, prompt[:shared])
        return slot, shared

    def note(self, slot: int, ids: Sequence[int] | npt.NDArray[np.int64]) -> None:
        """Record the tokens whose keys and values the slot holds, so that other prompts may copy them."""
        self._contents[slot] = np.asarray(ids, dtype=np.int64)
        self._clock += 1
        self._used[slot] = self._clock

    def release(self, slot: int, ids: Sequence[int] | npt.NDArray[np.int64]) -> None:
        """The row is done; ``ids`` are the tokens whose keys and values are in the slot."""
        self._busy[slot] = False
        self.note(slot, ids)

    def forget(self) -> None:
        """Drop everything (the weights changed)."""
        self._contents = [None] * self.slots
        self._busy = [False] * self.slots

    def free(self) -> None:
        """Drop everything and give its memory back; :meth:`reserve` takes it again."""
        self.forget()
        self.data = [self._allocate(self.slots, 0) for _ in self.data]

    def _allocate(self, slots: int, length: int) -> torch.Tensor:
        kv_heads, head_dim = self._shape
        # Zeros, not garbage: padded attention multiplies masked values by 0, and 0 × NaN is NaN.
        size = (slots + 1, length, 2 * kv_heads, head_dim)
        count = math.prod(size)
        if self._device.type != "cpu" or not count:
            return torch.zeros(size, dtype=self._dtype, device=self._device)
        # Pages of its own: what no row has reached yet takes no memory, and freeing gives it all back at once,
        # which the C heap, where a training step lies around it, could not do.
        pages = mmap.mmap(-1, count * self._dtype.itemsize, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        with contextlib.suppress(OSError):  # a kernel without them
            pages.madvise(mmap.MADV_HUGEPAGE)
        return torch.frombuffer(pages, dtype=self._dtype).view(size)

    def _length(self, slot: int) -> int:
        contents = self._contents[slot]
        return 0 if contents is None else len(contents)

    def _best_source(self, prompt: npt.NDArray[np.int64]) -> tuple[int | None, int]:
        best, shared = None, 0
        for slot, contents in enumerate(self._contents):
            if contents is None or min(len(contents), len(prompt) - 1) <= shared:
                continue
            common = _common_prefix(contents, prompt[:-1])
            if common > shared:
                best, shared = slot, common
        return best, shared

    def _victim(self, keep: int | None) -> int:
        """The free slot that was used longest ago, empty ones first; ``keep`` only if there is no other."""
        free = [slot for slot, busy in enumerate(self._busy) if not busy]
        return min(free, key=lambda slot: (slot == keep, self._contents[slot] is not None, self._used[slot], slot))


def _common_prefix(a: npt.NDArray[np.int64], b: npt.NDArray[np.int64]) -> int:
    n = min(len(a), len(b))
    different = np.nonzero(a[:n] != b[:n])[0]
    return int(different[0]) if len(different) else n
