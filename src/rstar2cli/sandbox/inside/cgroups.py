"""Control groups: memory and number of processes of a call, counted together. Versions 1 and 2.

The keeper makes one group for each place that a call can run in and keeps it; a call's process
enters it through an open file before it can fork.
"""

from __future__ import annotations

import os
import re

MOUNTS = "/proc/self/mounts"
OWN = "/proc/self/cgroup"
_PREFIX = "rstar2-"


class Unavailable(Exception):
    """No group can be made here; the message says why."""


class Group:
    """The group of one place: directories, and open files by which a process enters."""

    def __init__(self, directories: list[str], version: int) -> None:
        self.directories = directories
        self._version = version
        self._memory = directories[0]
        self._limits = (0, 0)
        self._kills = 0
        for directory in directories:
            os.makedirs(directory, exist_ok=True)
        self.entries = [os.open(f"{path}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC) for path in directories]

    def limit(self, memory_bytes: int, processes: int) -> None:
        """Set the limits; a group that has them already is left alone."""
        if self._limits == (memory_bytes, processes):
            return
        if self._version == 2:
            _write(f"{self._memory}/memory.max", str(memory_bytes))
            _write_if_there(f"{self._memory}/memory.swap.max", "0")
            _write_if_there(f"{self._memory}/memory.oom.group", "1")
        else:
            # the limit with swap may never be below the other: first lift it, then set both
            _write_if_there(f"{self._memory}/memory.memsw.limit_in_bytes", "-1")
            _write(f"{self._memory}/memory.limit_in_bytes", str(memory_bytes))
            _write_if_there(f"{self._memory}/memory.memsw.limit_in_bytes", str(memory_bytes))
        _write(f"{self.directories[-1]}/pids.max", str(processes))
        self._limits = (memory_bytes, processes)

    def killed_for_memory(self) -> bool:
        """Whether the kernel has ended a process here for want of memory since this was last asked."""
        before, self._kills = self._kills, self._count_kills()
        return self._kills > before

    def _count_kills(self) -> int:
        name = "memory.events" if self._version == 2 else "memory.oom_control"
        try:
            with open(f"{self._memory}/{name}") as file:
                found = re.search(r"^oom_kill (\d+)$", file.read(), re.MULTILINE)
        except FileNotFoundError:  # somebody removed the group; its place is mended before the next call
            return 0
        return int(found[1]) if found else 0

    def alive(self) -> bool:
        """Whether nobody has removed it."""
        return all(os.path.isdir(directory) for directory in self.directories)

    def close(self) -> None:
        """Remove it, if its processes are gone; a later sweep takes what is left."""
        for fd in self.entries:
            os.close(fd)
        for directory in self.directories:
            _remove(directory)


class Parent:
    """The directory (one a hierarchy) that holds this keeper's groups."""

    def __init__(self, configured: str) -> None:
        """``configured``: a delegated version 2 group; empty = the group that this process is in."""
        mounts = _mounts()
        if configured:
            self.version, bases = 2, [configured]
        elif "memory" in mounts and "pids" in mounts:
            self.version, bases = 1, [_own(mounts, name) for name in ("memory", "pids")]
        elif "2" in mounts:
            self.version, bases = 2, [_own(mounts, "2")]
        else:
            raise Unavailable("no memory controller is mounted")
        if self.version == 2:
            _delegate(bases[0])
        for base in bases:
            sweep(base)
        self.bases = bases
        self._directories = [f"{base}/{_PREFIX}{os.getpid()}" for base in bases]
        for directory in self._directories:
            try:
                os.makedirs(directory, exist_ok=True)
            except OSError as error:
                raise Unavailable(f"{directory}: {error.strerror}") from error
        if self.version == 2:
            _delegate(self._directories[0])

    def group(self, name: str) -> Group:
        """A group of this name below."""
        return Group([f"{directory}/{name}" for directory in self._directories], self.version)

    def close(self) -> None:
        """Remove the directories."""
        for directory in self._directories:
            _remove(directory)


def sweep(base: str) -> None:
    """Remove the groups below ``base`` whose keeper no longer lives."""
    for name in os.listdir(base):
        owner = name.removeprefix(_PREFIX)
        if name.startswith(_PREFIX) and owner.isdigit() and not os.path.exists(f"/proc/{owner}"):
            directory = f"{base}/{name}"
            for child in os.listdir(directory):
                if os.path.isdir(f"{directory}/{child}"):
                    _remove(f"{directory}/{child}")
            _remove(directory)


def _mounts() -> dict[str, str]:
    """Where each controller of version 1, and version 2 as a whole ("2"), is mounted."""
    found = {}
    with open(MOUNTS) as file:
        for line in file:
            _, place, kind, options = line.split()[:4]
            if kind == "cgroup2":
                found["2"] = place
            elif kind == "cgroup":
                found.update({option: place for option in options.split(",") if option in ("memory", "pids")})
    return found


def _own(mounts: dict[str, str], controller: str) -> str:
    """The directory of the group that this process is in."""
    with open(OWN) as file:
        for line in file:
            _, names, path = line.rstrip("\n").split(":", 2)
            if controller in names.split(",") or (controller == "2" and not names):
                inside = mounts[controller] + path.rstrip("/")
                # in a container the path may be one of the host's, which is not mounted here
                return inside if os.path.isdir(inside) else mounts[controller]
    raise Unavailable(f"this process is in no group of the {controller} controller")


def _delegate(directory: str) -> None:
    """Let the groups below have both controllers (version 2)."""
    with open(f"{directory}/cgroup.controllers") as file:
        missing = {"memory", "pids"} - set(file.read().split())
    if missing:
        raise Unavailable(f"{directory} has no {' and no '.join(sorted(missing))} controller")
    try:
        _write(f"{directory}/cgroup.subtree_control", "+memory +pids")
    except OSError as error:
        raise Unavailable(
            f"{directory} can't be divided ({error.strerror}): name a delegated one in sandbox.cgroup"
        ) from error


def _remove(directory: str) -> None:
    try:
        os.rmdir(directory)
    except (FileNotFoundError, OSError):  # processes that are still ending: a later sweep takes it
        return


def _write_if_there(path: str, text: str) -> None:
    if os.path.exists(path):
        _write(path, text)


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)
