"""The few system calls that Python 3.11 does not wrap."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

NEWNS, NEWIPC = 0x00020000, 0x08000000
NEWUSER, NEWPID, NEWNET = 0x10000000, 0x20000000, 0x40000000
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 36, 38
_ADDR_NO_RANDOMIZE = 0x0040000
_MS_REC_PRIVATE = 0x4000 | 0x40000
_MS_NOSUID_NODEV = 0x2 | 0x4
_SYS_MOUNT_SETATTR = 442  # the same number on every architecture
_AT_FDCWD, _AT_RECURSIVE, _MOUNT_ATTR_RDONLY = -100, 0x8000, 0x1
_INODES = 4096
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
    """Programs executed from here on are loaded at the same addresses, so that printed ones mostly repeat."""
    _libc.personality(_ADDR_NO_RANDOMIZE)


def enter_user_namespace() -> bool:
    """Leave the user namespace, keeping the own ids, to be allowed to leave others."""
    uid, gid = os.getuid(), os.getgid()
    if not unshare(NEWUSER):
        return False
    try:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            Path(f"/proc/self/{name}").write_text(text)
    except OSError:
        return False
    return True


def read_only_host() -> bool:
    """In a mount namespace of our own make every file system read-only."""
    if not unshare(NEWNS):
        return False
    if _libc.mount(None, b"/", None, _MS_REC_PRIVATE, None) != 0:
        return False
    attributes = (ctypes.c_uint64 * 4)(_MOUNT_ATTR_RDONLY, 0, 0, 0)
    made = _libc.syscall(
        ctypes.c_long(_SYS_MOUNT_SETATTR),
        ctypes.c_int(_AT_FDCWD),
        b"/",
        ctypes.c_uint(_AT_RECURSIVE),
        ctypes.byref(attributes),
        ctypes.c_size_t(ctypes.sizeof(attributes)),
    )
    return bool(made == 0)


def private_directory(place: str, room_bytes: int) -> bool:
    """In a mount namespace of our own put a small empty file system over ``place``; it ends with the namespace."""
    if not unshare(NEWNS):
        return False
    options = f"size={room_bytes},nr_inodes={_INODES},mode=700".encode()
    return bool(_libc.mount(b"tmpfs", place.encode(), b"tmpfs", _MS_NOSUID_NODEV, options) == 0)
