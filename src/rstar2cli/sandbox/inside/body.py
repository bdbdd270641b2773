"""One process of user code with all that it starts: born, killed and gathered as a whole."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass

from rstar2cli.sandbox.inside import cgroups, kernel
from rstar2cli.sandbox.inside.limits import Limits
from rstar2cli.sandbox.inside.loop import Loop
from rstar2cli.sandbox.inside.warmth import Warm


@dataclass
class Place:
    """Where one process may run at a time: a user id and a control group of its own, where these exist."""

    name: str
    uid: int | None
    group: cgroups.Group | None


@dataclass(frozen=True)
class Means:
    """What every body needs of its keeper."""

    loop: Loop
    jail: bool
    """Whether there are namespaces."""
    work_dir: str


class Body:
    """From the fork to the end of the last process. ``ended`` is called once, when nothing of it is left."""

    def __init__(
        self, means: Means, warm: Warm, place: Place, *, began: Callable[[], None], ended: Callable[[], None]
    ) -> None:
        self.place, self.warm = place, warm
        self.started = 0.0
        self.failure: str | None = None
        """Why it was not born, or was lost through no doing of its own."""
        self.status: int | None = None
        self.cpu_seconds = 0.0
        self.pid = self.init = self._parent = 0
        self._means, self._began, self._ended = means, began, ended
        self._init_fd = self._fd = -1
        self._killed = False
        self._directory = ""
        self._first: kernel.FirstProcess | None = None

    def start(self, limits: Limits, channels: list[int]) -> None:
        """Have it forked, with these descriptors, which are closed here."""
        lent = list(self.place.group.entries) if self.place.group else []
        if self._means.jail:
            self._first = kernel.FirstProcess()
            self.init = self._first.pid
            self._init_fd = os.pidfd_open(self.init)
            self._means.loop.watch(self._init_fd, self._init_gone)
            lent.append(self._init_fd)
        self._directory = limits.directory
        self.warm.fork(limits, channels, lent, self._forked)

    def kill(self) -> None:
        """End all of it. Safe to call at any time, also twice."""
        self._killed = True
        if self._init_fd >= 0:
            signal.pidfd_send_signal(self._init_fd, signal.SIGKILL)
        elif self._fd >= 0:
            signal.pidfd_send_signal(self._fd, signal.SIGKILL)

    def interrupt(self) -> None:
        """Send SIGINT to its first process."""
        if self._fd >= 0:
            signal.pidfd_send_signal(self._fd, signal.SIGINT)

    @property
    def roots(self) -> list[int]:
        """Its first process and the one that adopts its orphans."""
        return [pid for pid in (self.pid, self.init) if pid]

    def _forked(self, answer: dict[str, object]) -> None:
        if "failed" in answer:
            self.failure = str(answer["failed"])
            self.kill()
            self._maybe_ended()
            return
        self.started = time.monotonic()
        self.pid, self._parent = int(str(answer["pid"])), self.warm.pid
        self._fd = os.pidfd_open(self.pid)
        self._means.loop.watch(self._fd, self._first_gone)
        if self._killed:
            self.kill()
        self._began()

    def _first_gone(self) -> None:
        """The code has ended; what it left behind ends now."""
        self._means.loop.close(self._fd)
        self._fd = -1
        self.kill()
        self.warm.end(self.pid, self._parent, self._gathered)

    def _gathered(self, answer: dict[str, object]) -> None:
        if "failed" in answer:
            self.failure = self.failure or str(answer["failed"])
        else:
            self.status = int(str(answer["status"]))
            self.cpu_seconds += float(str(answer["cpu_seconds"]))
        self.pid = 0
        self._maybe_ended()

    def _init_gone(self) -> None:
        if not self._killed:
            self.failure = self.failure or "its first process was killed from outside"
        self._means.loop.close(self._init_fd)
        self._init_fd, self.init = -1, 0
        self._maybe_ended()

    def _maybe_ended(self) -> None:
        if self.pid or self.init or (not self.failure and self.status is None):
            return
        if self._means.work_dir:
            shutil.rmtree(self._directory, ignore_errors=True)
        self._ended()


def private_directory(means: Means) -> str:
    """Where a process will find itself: a mount point in the jail, or a directory made for it."""
    return tempfile.mkdtemp(dir=means.work_dir) if means.work_dir else "/tmp"
