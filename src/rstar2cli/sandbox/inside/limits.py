"""What a keeper is told when it starts, and the limits of one run. Plain values: they cross as JSON."""

from __future__ import annotations

import resource
from dataclasses import dataclass, field

_OPEN_FILES = 256
_INODES = 4096


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One keeper's settings."""

    isolate: bool
    """Whether to build the jail; without it code runs with limits only."""
    without: list[str]
    """Layers not to use even where they could be."""
    places: int
    """Calls at once."""
    sessions: int
    """Sessions at once."""
    first_uid: int
    """User id of the first place; the others follow."""
    packages: list[tuple[str, str]]
    """Names in site-packages with their places on the host."""
    cgroup: str
    """Directory of a delegated control group; empty = find one."""
    work_dir: str
    """Directory for calls where there is no jail; empty where there is."""
    output_bytes: int
    keep_chars: int
    file_bytes: int
    processes: int
    session_total_s: float


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits and identity of one process, as its warm process gets them."""

    uid: int | None
    """User to become; null = stay."""
    cpu_s: float
    memory_bytes: int
    file_bytes: int
    processes: int | None
    """Most processes of the user; null where something else counts them."""
    files_bytes: int
    """Room of the private directory."""
    directory: str
    """The private directory: a mount point in the jail, otherwise a directory of the call's own."""
    session: bool = False
    """Whether to serve cells instead of one call."""
    groups: int = 0
    """How many of the descriptors are entries of control groups."""
    jail: bool = True
    """Whether there are namespaces and a filter."""
    warm_bytes: int = field(default=0)
    """Address space that the warm process itself takes up."""

    def directory_options(self, uid: int, gid: int) -> str:
        """Mount options of the private directory."""
        return f"size={self.files_bytes},nr_inodes={_INODES},mode=700,uid={uid},gid={gid}"


def apply(limits: Limits) -> None:
    """Set the limits on this process and all that it starts."""
    cpu = max(1, round(limits.cpu_s + 0.499))
    space = limits.memory_bytes + limits.warm_bytes
    values = {
        resource.RLIMIT_AS: (space, space),
        resource.RLIMIT_CPU: (cpu, cpu + 1),
        resource.RLIMIT_FSIZE: (limits.file_bytes, limits.file_bytes),
        resource.RLIMIT_NOFILE: (_OPEN_FILES, _OPEN_FILES),
        resource.RLIMIT_CORE: (0, 0),
    }
    if limits.processes is not None:
        values[resource.RLIMIT_NPROC] = (limits.processes, limits.processes)
    for kind, pair in values.items():
        resource.setrlimit(kind, pair)
