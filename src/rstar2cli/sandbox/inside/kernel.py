"""The few system calls that Python 3.11 does not wrap."""

from __future__ import annotations

import ctypes
import os

NEWUSER, NEWPID, NEWNET, NEWIPC, NEWUTS = 0x10000000, 0x20000000, 0x40000000, 0x08000000, 0x04000000
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 36, 38
_ADDR_NO_RANDOMIZE = 0x0040000
_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> bool:
    """Whether the namespaces could be left."""
    return bool(_libc.unshare(flags) == 0)


def die_with_parent(signal: int) -> None:
    """Have the kernel send ``signal`` when the parent ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal, 0, 0, 0)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ended."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def give_up_privileges() -> None:
    """No set-uid program gives privileges back from here on, and no capability is left."""
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    _libc.capset(ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)()))


def same_addresses_in_every_run() -> None:
    """Programs executed from here on are loaded at the same addresses, so that ``id()`` and reprs repeat."""
    _libc.personality(_ADDR_NO_RANDOMIZE)


def enter_user_namespace() -> bool:
    """Leave the user namespace, keeping the own ids, to be allowed to leave others."""
    uid, gid = os.getuid(), os.getgid()
    if not unshare(NEWUSER):
        return False
    try:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    except OSError:
        return False
    return True
