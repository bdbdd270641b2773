"""The embedded sandbox: keepers, which fork each call from a warm process into a jail of its own.

All state belongs to one thread; calls from others are handed to it. What holds and what does not
on which host is written in ``docs/guides/sandbox.md``; :attr:`LocalSandbox.layers` says what is
there, and ``rstar2 sandbox-serve --check`` tries it.
"""

from __future__ import annotations

import base64
import contextlib
import os
import queue
import select
import shutil
import sys
import tempfile
import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from rstar2cli.core import process
from rstar2cli.core.errors import EnvironmentMissing
from rstar2cli.sandbox import packages
from rstar2cli.sandbox.config import SandboxConfig
from rstar2cli.sandbox.crew import Crew, Message
from rstar2cli.sandbox.decide import Granted, granted, outcome_of
from rstar2cli.sandbox.inside.limits import Settings
from rstar2cli.sandbox.keeper import KeeperFailed
from rstar2cli.sandbox.outcome import Outcome, SandboxRefused
from rstar2cli.sandbox.sessions import Sessions

_MIB = 1024 * 1024
_CREW = 8
"""Calls at once that one keeper looks after."""
_FIRST_UID, _UIDS, _BLOCK = 20000, 32, 1250
"""User ids are given out in blocks, one a sandbox, so that two on one machine rarely share any."""
_TICK_S = 0.5


class LocalSandbox:
    """Runs code on this machine; implements :class:`rstar2cli.sandbox.outcome.Sandbox`."""

    def __init__(self, config: SandboxConfig, *, without: Sequence[str] = ()) -> None:
        """``without``: layers not to use though this host has them, to try what a weaker host would do.

        Raises ``EnvironmentMissing`` where there can be no jail and the configuration does not waive it.
        """
        if sys.platform != "linux":
            raise EnvironmentMissing(
                "code runs on Linux only", hint="here, use the commands that inspect: show, stats, diff, sql, plot"
            )
        self.config = config
        self.workers = config.workers or process.cores()
        """Calls run at once."""
        self._without = list(without)
        self._lock = threading.Lock()
        self._closed = False
        self._orders: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._waiting: deque[tuple[Message, Granted, Future[Outcome]]] = deque()
        self._outcomes: Counter[str] = Counter()
        self._work_dir = self._make_work_dir() if config.isolation == "none" else ""
        self._crews: list[Crew] = []
        try:
            self._start_crews()
        except BaseException:
            self._clear()
            raise
        self._sessions = Sessions(config, self._crews, self._count)
        self._wake_fd, self._waker_fd = os.pipe()
        os.set_blocking(self._waker_fd, False)
        self._thread = threading.Thread(target=self._serve, name="sandbox", daemon=True)
        self._thread.start()

    @property
    def layers(self) -> list[str]:
        """Layers of isolation in use."""
        return list(self._layers)

    @property
    def missing(self) -> dict[str, str]:
        """Layers that are not, with the reason."""
        return dict(self._missing)

    def warm_up(self) -> None:
        """Begin to load every kind of warm process, without waiting; each is loaded when first needed otherwise."""
        for crew in self._crews:
            self._order(partial(crew.tell, {"op": "warm"}))

    def submit(
        self,
        code: str,
        stdin: str = "",
        *,
        seed: int = 0,
        wall_s: float | None = None,
        memory_mib: int | None = None,
        files: Mapping[str, bytes] | None = None,
    ) -> Future[Outcome]:
        """Queue a call; see :meth:`rstar2cli.sandbox.outcome.Sandbox.submit`."""
        future: Future[Outcome] = Future()
        limits = granted(self.config, wall_s, memory_mib)
        message = {
            "op": "call",
            "code": code,
            "stdin": stdin,
            "seed": seed,
            "files": {name: base64.b64encode(data).decode() for name, data in (files or {}).items()},
            **_asked(limits),
        }
        if not self._order(lambda: self._enqueue(message, limits, future)):
            future.set_result(_CLOSED)
        return future

    def open_session(self, *, seed: int = 0) -> Future[str]:
        """Open a session; see :meth:`rstar2cli.sandbox.outcome.Sandbox.open_session`."""
        future: Future[str] = Future()
        message = {"op": "open", **_asked(granted(self.config))}
        if not self._order(lambda: self._sessions.open(message, seed, future)):
            future.set_exception(SandboxRefused("lost", "the sandbox is closed"))
        return future

    def run_cell(self, session: str, code: str, *, sequence: int) -> Future[Outcome]:
        """Run a cell; see :meth:`rstar2cli.sandbox.outcome.Sandbox.run_cell`."""
        future: Future[Outcome] = Future()
        limits = granted(self.config)
        message = {"op": "cell", "code": code, "cell": sequence, **_asked(limits)}
        if not self._order(lambda: self._sessions.run(session, message, limits, future)):
            future.set_result(_CLOSED)
        return future

    def close_session(self, session: str) -> None:
        """End a session; one that is not known is no error."""
        self._order(lambda: self._sessions.close(session))

    def stats(self) -> dict[str, Any]:
        """Gauges and counters, for metrics."""
        return {
            "running": sum(min(crew.runs, crew.places) for crew in self._crews),
            "waiting": len(self._waiting) + sum(max(0, crew.runs - crew.places) for crew in self._crews),
            "warm_processes": sum(crew.warm for crew in self._crews),
            "restarts": sum(crew.restarts + crew.warm_restarts for crew in self._crews),
            "sessions": self._sessions.open_now,
            "outcomes": dict(self._outcomes),
        }

    def close(self) -> None:
        """Kill what runs, give up what waits (`lost`), free everything. Safe to call twice."""
        with self._lock:
            closing, self._closed = not self._closed, True
            if closing:
                self._orders.put(lambda: None)
                os.write(self._waker_fd, b"x")
        self._thread.join()
        if closing:
            os.close(self._wake_fd)
            os.close(self._waker_fd)
            self._clear()

    def _order(self, what: Callable[[], Any]) -> bool:
        """Have the thread do something; false if the sandbox is closed."""
        with self._lock:
            if self._closed:
                return False
            self._orders.put(what)
            with contextlib.suppress(BlockingIOError):  # full of wakings already
                os.write(self._waker_fd, b"x")
        return True

    def _serve(self) -> None:
        try:
            self._serve_until_closed()
        finally:  # also after a fault of ours: nobody may wait for ever
            self._closed = True
            self._give_up()

    def _serve_until_closed(self) -> None:
        while not self._closed:
            self._wait()
            self._obey()
            self._advance()
            self._sessions.expire()
            for crew in self._crews:
                crew.look_after()

    def _give_up(self) -> None:
        for crew in self._crews:
            crew.close()
        self._obey()
        for _, _, future in self._waiting:
            if future.set_running_or_notify_cancel():
                future.set_result(_CLOSED)
        self._waiting.clear()

    def _wait(self) -> None:
        """Wait for orders and answers, and deal with the answers."""
        poll = select.poll()  # not select: a busy service has descriptors that it can't name
        poll.register(self._wake_fd, select.POLLIN)
        keepers = {}
        for crew in self._crews:
            if crew.keeper is not None:
                for fd in crew.keeper.descriptors:
                    keepers[fd] = crew, crew.keeper
                    poll.register(fd, select.POLLIN)
                if crew.keeper.writing:
                    poll.modify(crew.keeper.descriptors[0], select.POLLIN | select.POLLOUT)
        for fd, events in poll.poll(_TICK_S * 1000):
            if fd == self._wake_fd:
                os.read(fd, 65536)
                continue
            crew, keeper = keepers[fd]
            if events & select.POLLOUT:
                keeper.write()
            if events & ~select.POLLOUT:
                crew.read()

    def _obey(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                self._orders.get_nowait()()

    def _enqueue(self, message: Message, limits: Granted, future: Future[Outcome]) -> None:
        self._waiting.append((message, limits, future))

    def _advance(self) -> None:
        while self._waiting:
            crew = max(self._crews, key=lambda crew: crew.free)
            if crew.free <= 0:
                return
            message, limits, future = self._waiting.popleft()
            if future.set_running_or_notify_cancel():
                self._send(crew, message, limits, future)

    def _send(self, crew: Crew, message: Message, limits: Granted, future: Future[Outcome]) -> None:
        def answered(reply: Message | None, why: str) -> None:
            outcome = Outcome(kind="lost", detail=why) if reply is None else outcome_of(reply["result"], limits)
            if outcome.kind == "setup_failed" and crew.keeper is not None:
                outcome = msgspec.structs.replace(outcome, detail=f"{outcome.detail}. {crew.keeper.last_words()}")
            self._count(outcome)
            future.set_result(outcome)

        crew.ask(message, answered)

    def _count(self, outcome: Outcome) -> None:
        self._outcomes[outcome.kind] += 1

    def _start_crews(self) -> None:
        found = packages.find(self.config.packages)
        if self._work_dir:
            site = Path(self._work_dir) / "site-packages"
            site.mkdir()
            for name, path in found:
                (site / name).symlink_to(path)
        crews = -(-self.workers // _CREW)
        for number in range(crews):
            try:
                crew = Crew(self._settings(number, crews, found))
            except KeeperFailed as error:
                raise EnvironmentMissing(str(error), hint="see rstar2 doctor") from error
            self._crews.append(crew)
            keeper = crew.keeper
            assert keeper is not None
            self._layers, self._missing = keeper.layers, keeper.missing
            if keeper.lacking:
                reasons = "; ".join(f"no {name} ({self._missing[name]})" for name in keeper.lacking)
                raise EnvironmentMissing(
                    f"this host can't isolate code: {reasons}",
                    hint="run as root or allow user namespaces; or run trusted code only, with "
                    "--set sandbox.isolation=none",
                )

    def _settings(self, number: int, crews: int, found: list[tuple[str, str]]) -> Settings:
        config = self.config
        places = len(range(number, self.workers, crews))
        sessions = len(range(number, config.sessions, crews))
        block = _FIRST_UID + os.getpid() % _UIDS * _BLOCK
        return Settings(
            isolate=config.isolation == "auto",
            without=self._without,
            places=places,
            sessions=sessions,
            first_uid=block
            + sum(
                len(range(other, self.workers, crews)) + len(range(other, config.sessions, crews))
                for other in range(number)
            ),
            packages=found,
            cgroup=config.cgroup,
            work_dir=self._work_dir,
            output_bytes=config.output_mib * _MIB,
            keep_chars=config.keep_chars,
            file_bytes=config.file_mib * _MIB,
            processes=config.processes,
            session_total_s=config.session_total_s,
        )

    def _make_work_dir(self) -> str:
        return tempfile.mkdtemp(prefix="rstar2-sandbox-")

    def _clear(self) -> None:
        for crew in self._crews:
            crew.close()
        if self._work_dir:
            shutil.rmtree(self._work_dir, ignore_errors=True)


_CLOSED = Outcome(kind="lost", detail="the sandbox is closed")


def _asked(limits: Granted) -> Message:
    return {"wall_s": limits.wall_s, "cpu_s": limits.cpu_s, "memory_bytes": limits.memory_mib * _MIB}
