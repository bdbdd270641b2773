"""The few system calls that Python 3.11 does not wrap. Those that must not fail raise OSError."""

from __future__ import annotations

import ctypes
import os
import signal
import struct

NEWNS, NEWUTS, NEWIPC = 0x00020000, 0x04000000, 0x08000000
NEWUSER, NEWPID, NEWNET = 0x10000000, 0x20000000, 0x40000000
_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 22, 24, 36, 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE = 47, 2
_SECCOMP_MODE_FILTER = 2
_ADDR_NO_RANDOMIZE = 0x0040000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_BIND, _MS_REC, _MS_PRIVATE = 0x2, 0x4, 0x8, 0x1000, 0x4000, 0x40000
_MNT_DETACH = 2
_CLONE_VM, _CLONE_FS, _CLONE_FILES = 0x100, 0x200, 0x400
_STACK_BYTES = 16384
# the same numbers on x86_64 and aarch64
_SYS_MOUNT_SETATTR = 442
_SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV = 0x1, 0x2, 0x4
_CAPABILITY_VERSION_3 = 0x20080522
_LAST_CAPABILITY = 63

_libc = ctypes.CDLL(None, use_errno=True)
_libc_with_gil = ctypes.PyDLL(None, use_errno=True)
_no_capabilities = struct.pack("II", _CAPABILITY_VERSION_3, 0), bytes(24)


def _must(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Leave namespaces for new ones."""
    _must(_libc.unshare(flags), "unshare")


def fork() -> int:
    """Fork a process that has one thread, without what Python does about others.

    ``os.fork`` runs the hooks of threading and random in the child, which touch, and so copy, as
    many pages as a short call does itself. Seeding is ours, and there are no threads to forget.
    """
    pid: int = _libc_with_gil.fork()
    if pid < 0:
        _must(-1, "fork")
    return pid


def set_namespace(fd: int, flags: int) -> None:
    """Enter the namespaces of the process that ``fd`` (a pidfd) names; a PID namespace is for children only."""
    _must(_libc.setns(fd, flags), "setns")


def die_with_parent(number: int) -> None:
    """Have the kernel send this signal when the parent ends; a change of user id undoes it."""
    _libc.prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ended."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def no_new_privileges() -> None:
    """No set-uid program gives privileges from here on."""
    _must(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")


def empty_bounding_set() -> None:
    """No program that is executed from here on gets a capability, whoever runs it."""
    for capability in range(_LAST_CAPABILITY + 1):
        if _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            return  # past the last that this kernel knows, or not allowed to


def keep_capabilities() -> None:
    """Take the capabilities of this process along into the program that it executes next, also if it is not root."""
    header, sets = struct.pack("II", _CAPABILITY_VERSION_3, 0), (ctypes.c_uint32 * 6)()
    _must(_libc.capget(header, sets), "capget")
    sets[2], sets[5] = sets[1], sets[4]  # inheritable as permitted
    _must(_libc.capset(header, sets), "capset")
    permitted = sets[1] | sets[4] << 32
    for capability in range(_LAST_CAPABILITY + 1):
        if permitted >> capability & 1:
            _must(_libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, capability, 0, 0), "ambient capability")


def drop_capabilities() -> None:
    """Give up every capability of this process."""
    _must(_libc.capset(*_no_capabilities), "capset")


def install_filter(program: bytes) -> None:
    """Install a seccomp filter (a packed ``struct sock_fprog``)."""
    _must(_libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, program, 0, 0), "seccomp")


def same_addresses_in_every_run() -> None:
    """Programs executed from here on are loaded at the same addresses, so that printed ones mostly repeat."""
    _libc.personality(_ADDR_NO_RANDOMIZE)


def set_host_name(name: bytes) -> None:
    """Name this UTS namespace."""
    _must(_libc.sethostname(name, len(name)), "sethostname")


def own_mounts() -> None:
    """Enter a mount namespace of which nothing is seen outside."""
    unshare(NEWNS)
    _must(_libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None), "private mounts")


def mount_tmpfs(place: str, options: str) -> None:
    """Put an empty file system in memory over ``place``."""
    flags = _MS_NOSUID | _MS_NODEV
    _must(_libc.mount(b"tmpfs", place.encode(), b"tmpfs", flags, options.encode()), f"tmpfs on {place}")


def bind(source: str, place: str) -> None:
    """Show ``source`` at ``place`` too, which must exist and be of the same kind."""
    _must(_libc.mount(source.encode(), place.encode(), None, _MS_BIND, None), f"bind {place}")


def freeze_mount(place: str, *, devices: bool = False, recursive: bool = False) -> None:
    """Make a mount read-only, without set-uid programs, and without devices unless ``devices``."""
    attributes = (ctypes.c_uint64 * 4)(_ATTR_RDONLY | _ATTR_NOSUID | (0 if devices else _ATTR_NODEV), 0, 0, 0)
    made = _libc.syscall(
        ctypes.c_long(_SYS_MOUNT_SETATTR),
        ctypes.c_int(_AT_FDCWD),
        place.encode(),
        ctypes.c_uint(_AT_RECURSIVE if recursive else 0),
        ctypes.byref(attributes),
        ctypes.c_size_t(ctypes.sizeof(attributes)),
    )
    _must(made, f"read-only {place}")


def change_root(place: str) -> None:
    """Make the mount at ``place`` the root of this mount namespace and detach the old one."""
    os.chdir(place)
    number = ctypes.c_long(_SYS_PIVOT_ROOT[os.uname().machine])
    _must(_libc.syscall(number, b".", b"."), "pivot_root")  # the old root now lies over the new one
    _must(_libc.umount2(b".", _MNT_DETACH), "detach the old root")
    os.chdir("/")


class FirstProcess:
    """Process 1 of a PID namespace of its own. It does nothing: the kernel gives it orphans, and ends all with it.

    It runs nothing but the C library's ``pause``, in the memory of this process, because to copy a
    whole interpreter for that would be a third of what a call costs. This process must ignore
    SIGCHLD: what ends in the namespace is then reaped by the kernel. Whoever kills this process
    must kill its process group.
    """

    def __init__(self) -> None:
        self._stack = ctypes.create_string_buffer(_STACK_BYTES)  # lives as long as the process: it stands on it
        top = (ctypes.addressof(self._stack) + _STACK_BYTES - 64) & ~15
        flags = NEWPID | _CLONE_VM | _CLONE_FILES | _CLONE_FS | signal.SIGCHLD
        self.pid: int = _libc.clone(_libc.pause, ctypes.c_void_p(top), flags, None)
        if self.pid < 0:
            _must(-1, "clone")


def enter_user_namespace() -> None:
    """Enter a user namespace that knows this user's id and group only."""
    uid, gid = os.getuid(), os.getgid()
    unshare(NEWUSER)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
