"""Comparisons that need algebra, in killable processes. Safe to call from any thread.

A worker that hangs or grows past its limits is killed by the kernel: ``undecided`` with the reason
``limit``. One that dies of anything else is replaced and its row tried once more: then ``undecided``,
``checker_lost``. Nothing that happens to a worker is ever a wrong answer.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import asdict
from types import TracebackType
from typing import cast

import msgspec

from rstar2cli.answers.equivalence import Comparison, Reason
from rstar2cli.answers.policy import Policy
from rstar2cli.core.errors import EnvironmentMissing
from rstar2cli.grading.nursery import Reply, Request, receive, send
from rstar2cli.records import AnswerKind, Verdict

WALL_SECONDS = 20.0
"""A worker silent for so long is killed: its CPU limit should have ended it, so it is stopped or starved."""
START_SECONDS = 120.0
ATTEMPTS = 2


class Workers:
    """A nursery and up to ``count`` workers, started when first needed (or by ``start``)."""

    def __init__(self, count: int | None = None, *, wall_seconds: float = WALL_SECONDS) -> None:
        """``count``: workers at once; by default one a CPU, at most 8."""
        self._wall_seconds = wall_seconds
        self.count = count or max(1, min(8, len(os.sched_getaffinity(0))))
        self._free = threading.BoundedSemaphore(self.count)
        self._idle: list[_Worker] = []
        self._lock = threading.Lock()
        self._nursery: _Nursery | None = None
        self._closed = False

    def start(self) -> None:
        """Begin to load the nursery, without waiting for it."""
        with self._lock:
            self._living_nursery()

    def ready(self) -> None:
        """Wait until the nursery is loaded and a worker is there."""
        with self._free:
            self._give_back(self._hire())

    def compare(
        self, answer: str, gold: str, kind: AnswerKind | None, policy: Policy, *, identity: bool = True
    ) -> Comparison:
        """Compare with algebra, whatever the texts are. Raises ``EnvironmentMissing`` if no nursery starts."""
        request = msgspec.json.encode(Request(answer, gold, kind, asdict(policy), identity))
        with self._free:
            for _ in range(ATTEMPTS):
                worker = self._hire()
                reply = worker.ask(request)
                if reply is not None:
                    if reply.last:
                        worker.close()
                    else:
                        self._give_back(worker)
                    return Comparison(verdict=cast(Verdict, reply.verdict), reason=cast(Reason, reply.reason))
                if worker.end() == -signal.SIGPROF:
                    return Comparison(verdict="undecided", reason="limit")
        return Comparison(verdict="undecided", reason="checker_lost")

    def close(self) -> None:
        """End all workers and the nursery."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            nursery, self._nursery = self._nursery, None
        for worker in idle:
            worker.close()
        if nursery is not None:
            nursery.close()

    def __enter__(self) -> Workers:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def _hire(self) -> _Worker:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        for _ in range(ATTEMPTS):
            with self._lock:
                nursery = self._living_nursery()
            worker = nursery.fork()
            if worker is not None:
                return worker
        raise EnvironmentMissing("the process that grading starts its workers from ends at once")

    def _give_back(self, worker: _Worker) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(worker)
                return
        worker.close()

    def _living_nursery(self) -> _Nursery:
        if self._closed:
            raise RuntimeError("these workers are closed")
        if self._nursery is None or not self._nursery.alive():
            if self._nursery is not None:
                self._nursery.close()
            self._nursery = _Nursery(self._wall_seconds)
        return self._nursery


class _Nursery:
    def __init__(self, wall_seconds: float) -> None:
        self._wall_seconds = wall_seconds
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "rstar2cli.grading.nursery", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
            )
        ours.settimeout(START_SECONDS)
        self._control = ours
        self._lock = threading.Lock()
        self._loaded = False
        self._broken = False

    def alive(self) -> bool:
        return not self._broken and self._process.poll() is None

    def fork(self) -> _Worker | None:
        """A new worker; null if the nursery is gone."""
        ours, theirs = socket.socketpair()
        with theirs, self._lock:
            try:
                if not self._loaded:
                    self._loaded = self._control.recv(1) == b"R"
                socket.send_fds(self._control, [b"F"], [theirs.fileno()])
                pid = self._control.recv(64)
            except OSError:
                pid = b""
            if not pid:
                self._broken = True
                ours.close()
                return None
        ours.settimeout(self._wall_seconds)
        return _Worker(ours, int(pid), self)

    def exit_status(self, pid: int) -> int | None:
        """Exit status of a worker that is dead or dying; null if the nursery is gone."""
        with self._lock:
            try:
                self._control.sendall(b"W" + str(pid).encode())
                return int(self._control.recv(64) or b"x")
            except (OSError, ValueError):
                self._broken = True
                return None

    def close(self) -> None:
        self._control.close()  # which ends it, once it has loaded
        if not self._loaded:
            self._process.kill()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class _Worker:
    def __init__(self, channel: socket.socket, pid: int, nursery: _Nursery) -> None:
        self._channel, self._pid, self._nursery = channel, pid, nursery

    def ask(self, request: bytes) -> Reply | None:
        """Its reply; null if it died or said nothing."""
        try:
            send(self._channel, request)
            message = receive(self._channel)
        except OSError:
            return None
        return None if message is None else msgspec.json.decode(message, type=Reply)

    def end(self) -> int | None:
        """Make sure that it is dead; its exit status."""
        self._channel.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        return self._nursery.exit_status(self._pid)

    def close(self) -> None:
        """Let it end by itself: it reads the end of its socket."""
        self._channel.close()
        self._nursery.exit_status(self._pid)
