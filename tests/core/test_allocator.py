"""The allocator's settings take effect in a process of their own, and leave what the user chose."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROBE = """
import os, resource
from rstar2cli.core.allocator import keep_memory
print(keep_memory(), os.environ["THP_MEM_ALLOC_ENABLE"])
import ctypes
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
size = 64 << 20
def touch():
    place = libc.malloc(size)
    ctypes.memset(place, 1, size)
    libc.free(place)
touch()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(8):
    touch()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def probe(**environment: str) -> tuple[str, str, int]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("MALLOC_", "THP_"))}
    done = subprocess.run(
        [sys.executable, "-c", PROBE], env={**clean, **environment}, capture_output=True, text=True, check=True
    )
    said, faults = done.stdout.splitlines()
    worked, large = said.split()
    return worked, large, int(faults)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc")
def test_a_block_that_was_freed_is_taken_again_without_the_kernel() -> None:
    worked, large, faults = probe()
    assert (worked, large) == ("True", "1")
    assert faults < 100  # each of the eight would fault on 32 pages of 2 MiB, or 16384 of 4 KiB


def test_what_the_user_set_is_left_alone() -> None:
    worked, large, faults = probe(MALLOC_MMAP_THRESHOLD_="1048576", THP_MEM_ALLOC_ENABLE="0")
    assert (worked, large) == ("False", "0")
    assert faults > 100


def test_free_memory_goes_back_when_asked() -> None:
    script = """
import ctypes
from rstar2cli.core.allocator import give_back, keep_memory
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
keep_memory()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
place = libc.malloc(256 << 20)
ctypes.memset(place, 1, 256 << 20)
libc.free(place)
held = resident()
give_back()
print(held - resident())
"""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("MALLOC_", "THP_"))}
    done = subprocess.run([sys.executable, "-c", script], env=clean, capture_output=True, text=True, check=True)
    assert int(done.stdout) > 200 << 20
