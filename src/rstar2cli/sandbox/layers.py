"""Which walls this host can put around the code it runs."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from pathlib import Path

_CLONE_NEWNS, _CLONE_NEWPID, _CLONE_NEWNET, _CLONE_NEWUSER = 0x00020000, 0x20000000, 0x40000000, 0x10000000
_PR_GET_SECCOMP = 21


@dataclass(frozen=True, kw_only=True)
class LayerState:
    """One layer of isolation."""

    name: str
    """Name of the layer."""
    present: bool
    """Whether this process can use it."""
    detail: str
    """What was found, or what its absence means."""


def layers() -> list[LayerState]:
    """Try each layer in a child process of its own; this process is not changed."""
    rows = [
        LayerState(name="user ids", present=os.geteuid() == 0, detail="needs root: calls run under ids of their own")
    ]
    for name, flag, absent in (
        ("pid namespace", _CLONE_NEWPID, "orphans are killed by session and process group instead"),
        ("mount namespace", _CLONE_NEWNS, "calls see the host's files that their user may read"),
        ("network namespace", _CLONE_NEWNET, "calls can reach the network"),
        ("user namespace", _CLONE_NEWUSER, "no isolation without root"),
    ):
        present = _can_unshare(flag)
        rows.append(LayerState(name=name, present=present, detail="available" if present else absent))
    rows.append(_seccomp())
    rows.append(_cgroup())
    return rows


def _can_unshare(flag: int) -> bool:
    child = os.fork()
    if child == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        os._exit(0 if libc.unshare(flag) == 0 else 1)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == 0


def _seccomp() -> LayerState:
    libc = ctypes.CDLL(None, use_errno=True)
    present = libc.prctl(_PR_GET_SECCOMP, 0, 0, 0, 0) >= 0
    return LayerState(
        name="seccomp", present=present, detail="available" if present else "system calls are not filtered"
    )


def _cgroup() -> LayerState:
    root = Path("/sys/fs/cgroup")
    controllers = root / "cgroup.controllers"
    if controllers.exists():
        names = controllers.read_text().split()
        usable = "memory" in names and os.access(root, os.W_OK)
        return LayerState(name="cgroup memory", present=usable, detail=f"v2: {' '.join(names) or 'no controllers'}")
    usable = os.access(root / "memory", os.W_OK)
    detail = "v1" if usable else "memory is limited per process only (RLIMIT_AS)"
    return LayerState(name="cgroup memory", present=usable, detail=detail)
