"""The same walls for a worker of ours that handles what others wrote, such as a checker of answers.

It keeps the socket over which it is asked, and reads the code of a few packages; it reaches no
other file, no network and no other process, and no system call that is not on the list.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from rstar2cli.sandbox.inside import jail, kernel, syscalls, tree
from rstar2cli.sandbox.inside.seccomp import Filter

UID = 64999
"""User of confined workers where root starts them."""


def confine(readable: Sequence[str]) -> list[str]:
    """Put the walls up around this process, which must have one thread; the names of those this host does not give.

    ``readable``: files and directories that stay, read-only, where they are.
    """
    root = os.geteuid() == 0
    missing: list[str] = []

    def wall(name: str, put_up: Callable[[], None]) -> None:
        try:
            put_up()
        except OSError:
            missing.append(name)

    if not root:
        wall("user namespace", kernel.enter_user_namespace)
    for name, flag in (
        ("network namespace", kernel.NEWNET),
        ("ipc namespace", kernel.NEWIPC),
        ("uts namespace", kernel.NEWUTS),
    ):
        wall(name, lambda flag=flag: kernel.unshare(flag))  # type: ignore[misc]
    wall("file jail", lambda: tree.keep_only(readable))
    wall("privileges", kernel.empty_bounding_set)
    wall("privileges", lambda: jail.drop(UID if root else None))
    if syscalls.supported():
        wall("seccomp", Filter(memfd=False, channel=True).install)
    else:
        missing.append("seccomp")
    return missing
