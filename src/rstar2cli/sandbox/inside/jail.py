"""The last walls, which a process puts around itself just before it runs what is not ours.

The warm process it was forked from has already left the host's files, network, IPC and host name;
what remains is its own directory, its user, its privileges and the system calls.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence

from rstar2cli.sandbox.inside import kernel, limits
from rstar2cli.sandbox.inside.limits import Limits
from rstar2cli.sandbox.inside.seccomp import Filter


def enter(given: Limits, groups: Sequence[int], calls: Filter | None) -> None:
    """Enter the jail of one call or session: for good, with everything that is started from here on.

    ``groups``: open entries of control groups. Raises OSError if any wall can't be put up.
    """
    os.setsid()
    for fd in groups:
        os.write(fd, b"0")
        os.close(fd)
    if given.jail:
        kernel.unshare(kernel.NEWNS)
        uid, gid = (given.uid, given.uid) if given.uid is not None else (os.getuid(), os.getgid())
        kernel.mount_tmpfs(given.directory, given.directory_options(uid, gid))
    os.chdir(given.directory)
    limits.apply(given)
    drop(given.uid)
    if calls is not None:
        calls.install()


def drop(uid: int | None) -> None:
    """Become ``uid`` (null = stay who we are), without capabilities, and end when the parent ends."""
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    kernel.no_new_privileges()
    kernel.drop_capabilities()
    kernel.die_with_parent(signal.SIGKILL)
