"""Settings of the C allocator that keep a stage from waiting for the kernel's pages."""

from __future__ import annotations

import ctypes
import os

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX, _ARENA_MAX = -1, -2, -4, -8
"""Numbers of glibc's ``mallopt`` parameters (malloc.h)."""
_LARGEST = 2**31 - 1
_PAD = 64 << 20


def keep_memory() -> bool:
    """Let freed memory be used again instead of going back to the kernel, in large pages; whether it could be set.

    A training step frees and takes the same tensors over and over; by default glibc maps those over 32 MiB anew
    each time and the kernel zeroes every page. Must be called before torch is imported, which reads the setting of
    large pages once. What the environment says already (`MALLOC_…`, `THP_MEM_ALLOC_ENABLE`) is left as it is.
    """
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # not in every libc
    if mallopt is None or any(name.startswith("MALLOC_") for name in os.environ):
        return False
    settings = ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, _LARGEST), (_TOP_PAD, _PAD), (_ARENA_MAX, 1))
    return all(mallopt(name, value) == 1 for name, value in settings)


def give_back() -> None:
    """Return what is free to the kernel, where the C library can: between two phases that need different memory."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
