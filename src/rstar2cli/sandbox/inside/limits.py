"""The limits of a call, as the keeper gets them on its command line."""

from __future__ import annotations

import resource
from dataclasses import dataclass, field

_OPEN_FILES = 256


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits and places of one keeper. Plain values only: it crosses a process border as JSON."""

    wall_s: float
    cpu_s: float
    memory_bytes: int
    output_bytes: int
    keep_chars: int
    file_bytes: int
    processes: int
    isolate: bool
    uid: int
    work_dir: str
    packages: list[str] = field(default_factory=list)


def apply(limits: Limits, *, own_uid: bool) -> None:
    """Set them on this process and all it starts. NPROC counts by user: only where the user is the call's alone."""
    cpu = max(1, round(limits.cpu_s + 0.499))
    values = {
        resource.RLIMIT_AS: (limits.memory_bytes, limits.memory_bytes),
        resource.RLIMIT_CPU: (cpu, cpu + 1),
        resource.RLIMIT_FSIZE: (limits.file_bytes, limits.file_bytes),
        resource.RLIMIT_NOFILE: (_OPEN_FILES, _OPEN_FILES),
        resource.RLIMIT_CORE: (0, 0),
    }
    if own_uid:
        values[resource.RLIMIT_NPROC] = (limits.processes, limits.processes)
    for kind, pair in values.items():
        resource.setrlimit(kind, pair)
