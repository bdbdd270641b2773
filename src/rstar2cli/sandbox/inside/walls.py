"""What a keeper finds on this host, and puts up once for all of its calls."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from rstar2cli.sandbox.inside import cgroups, kernel, syscalls, tree
from rstar2cli.sandbox.inside.limits import Settings

REQUIRED = ("file jail", "pid namespace", "network namespace", "ipc namespace", "uts namespace", "seccomp")
"""Without one of these there is no jail, and a sandbox that is not told to do without refuses to work."""


class Walls:
    """The layers of this keeper, and those that are missing with the reason."""

    def __init__(self, settings: Settings) -> None:
        """Enter what this process itself must be in: a user namespace, and a mount namespace with the tree."""
        self.present: list[str] = []
        self.missing: dict[str, str] = {}
        self.root = ""
        self.groups: cgroups.Parent | None = None
        self._without = settings.without
        self.isolated = settings.isolate
        if not self.isolated:
            self.missing = dict.fromkeys((*REQUIRED, "user ids", "cgroup memory and pids"), "isolation is none")
            return
        self._groups(settings.cgroup)  # before /tmp is covered and the user namespace takes rights away
        self._privileges(settings)
        for name, flag in (
            ("pid namespace", kernel.NEWPID),
            ("network namespace", kernel.NEWNET),
            ("ipc namespace", kernel.NEWIPC),
            ("uts namespace", kernel.NEWUTS),
        ):
            self._try(name, lambda flag=flag: _in_child(lambda: kernel.unshare(flag)))  # type: ignore[misc]
        self._try("seccomp", _filters)
        self._try("file jail", lambda: self._tree(settings))

    @property
    def lacking(self) -> list[str]:
        """Required layers that are missing."""
        return [name for name in REQUIRED if name in self.missing]

    def _try(self, name: str, put_up: Callable[[], None]) -> None:
        if name in self._without:
            self.missing[name] = "told to do without"
            return
        try:
            put_up()
        except (OSError, cgroups.Unavailable) as error:
            self.missing[name] = str(error)
        else:
            self.present.append(name)

    def _groups(self, configured: str) -> None:
        def make() -> None:
            self.groups = cgroups.Parent(configured)

        self._try("cgroup memory and pids", make)

    def _privileges(self, settings: Settings) -> None:
        """As root with its rights, calls get ids of their own; anyone else needs a user namespace, which knows one."""
        if os.geteuid() == 0:
            self._try("user ids", lambda: _in_child(lambda: _become(settings.first_uid)))
        else:
            self.missing["user ids"] = "only root can give them out: calls are the same user"
        if "user ids" not in self.present:
            self._try("user namespace", kernel.enter_user_namespace)

    def _tree(self, settings: Settings) -> None:
        kernel.own_mounts()
        self.root = tree.build(settings.packages)


def _become(uid: int) -> None:
    """Whether ids and the rights to put walls up are there: a container's root may have neither."""
    kernel.unshare(kernel.NEWNS)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def _filters() -> None:
    if not syscalls.supported():
        raise OSError(f"no table of system calls for {os.uname().machine}")

    def install() -> None:
        from rstar2cli.sandbox.inside.seccomp import Filter

        kernel.no_new_privileges()
        Filter(memfd=False).install()

    _in_child(install)


def _in_child(attempt: Callable[[], None]) -> None:
    """Make an attempt in a process of its own; its error is raised here."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        text = "ended early"
        try:
            attempt()
            text = ""
        except OSError as error:
            text = str(error)
        finally:
            os.write(writer, text.encode())
            os._exit(0)
    os.close(writer)
    with open(reader) as file:
        text = file.read()
    _, status = os.waitpid(pid, 0)
    if text or status:
        raise OSError(text or f"ended by signal {signal.Signals(os.WTERMSIG(status)).name}")
