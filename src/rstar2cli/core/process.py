"""The one reader of the process environment: ranks, debug flag, memory, cores."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

PREFIX = "RSTAR2_"
_UNLIMITED = 1 << 60


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """Where this process stands among those that ``accelerate launch`` or torchrun started."""

    rank: int
    local_rank: int
    world_size: int

    @property
    def main(self) -> bool:
        """Whether this is the process that writes and reports."""
        return self.rank == 0


def ranks() -> Ranks:
    """RANK, LOCAL_RANK and WORLD_SIZE, or a single process."""
    env = os.environ
    return Ranks(
        rank=int(env.get("RANK", "0")),
        local_rank=int(env.get("LOCAL_RANK", "0")),
        world_size=int(env.get("WORLD_SIZE", "1")),
    )


def debug() -> bool:
    """Whether tracebacks are wanted (RSTAR2_DEBUG=1)."""
    return os.environ.get(PREFIX + "DEBUG", "") not in ("", "0")


def config_environment() -> dict[str, str]:
    """``RSTAR2_A__B=v`` as ``{"a.b": "v"}``: configuration from the environment, DEBUG aside."""
    return {
        name[len(PREFIX) :].lower().replace("__", "."): value
        for name, value in os.environ.items()
        if name.startswith(PREFIX) and name != PREFIX + "DEBUG"
    }


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0))


def memory_limit() -> int:
    """Bytes this process may use: the smaller of the cgroup's limit and the machine's memory."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = [total]
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        path = Path("/sys/fs/cgroup") / name
        if path.exists():
            text = path.read_text().strip()
            if text.isdigit() and int(text) < _UNLIMITED:
                limits.append(int(text))
    return min(limits)
