"""What the processes of a namespace use together, read from the keeper's /proc: for what no controller counts."""

from __future__ import annotations

import os

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_MOST = 512


def family(roots: list[int]) -> list[int]:
    """These processes and all their descendants, as far as they live."""
    found: list[int] = []
    waiting = list(roots)
    while waiting and len(found) < _MOST:
        pid = waiting.pop()
        found.append(pid)
        try:
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/children") as file:
                    waiting += [int(child) for child in file.read().split()]
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended meanwhile
    return found


def cpu_seconds(pids: list[int]) -> float:
    """CPU time of these processes and of their children that have ended."""
    ticks = 0
    for pid in pids:
        fields = _stat(pid)
        ticks += sum(int(field) for field in fields[11:15]) if fields else 0
    return ticks / _TICKS


def memory_bytes(pids: list[int], shared: int) -> int:
    """Memory of these processes, less ``shared`` bytes in each that it has in common with its warm process."""
    total = 0
    for pid in pids:
        fields = _stat(pid)
        total += max(0, int(fields[21]) * _PAGE - shared) if fields else 0
    return total


def resident_bytes(pid: int) -> int:
    """Memory of one process; 0 if it has ended."""
    fields = _stat(pid)
    return int(fields[21]) * _PAGE if fields else 0


def space_bytes(pid: int) -> int:
    """Address space of one process; 0 if it has ended."""
    fields = _stat(pid)
    return int(fields[20]) if fields else 0


def waited_s(pid: int) -> float:
    """Seconds that a process's first thread stood ready but got no core; 0 if the kernel does not say."""
    try:
        with open(f"/proc/{pid}/schedstat") as file:
            return int(file.read().split()[1]) / 1e9
    except (FileNotFoundError, ProcessLookupError):
        return 0.0


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the third on; none if it has ended."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
