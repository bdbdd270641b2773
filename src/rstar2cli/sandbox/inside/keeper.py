"""The keeper: supervises calls and sessions for its host, from outside of their jail.

It is executed clean, puts up what all calls share, and serves the host over one socket until the
host's end closes; then it ends everything and leaves nothing behind. One thread, no waiting.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from rstar2cli.sandbox.inside import kernel, preload, tree
from rstar2cli.sandbox.inside.body import Means, Place, private_directory
from rstar2cli.sandbox.inside.call import Call
from rstar2cli.sandbox.inside.deadline import Allowance
from rstar2cli.sandbox.inside.frames import Incoming, Outgoing, frame
from rstar2cli.sandbox.inside.limits import Limits, Settings
from rstar2cli.sandbox.inside.loop import Loop
from rstar2cli.sandbox.inside.places import Places
from rstar2cli.sandbox.inside.session import Session
from rstar2cli.sandbox.inside.walls import Walls
from rstar2cli.sandbox.inside.warmth import Boot, Warm

_CHUNK = 1 << 18
_FILES = 4
"""Files of the largest size that a private directory holds."""
_END_S = 5.0
Message = dict[str, Any]


def main(host_fd: int, sources_fd: int, program: str) -> None:
    """Serve the host at ``host_fd``; the settings are the second argument, as JSON."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the host, which closes the socket
    settings = Settings(**json.loads(sys.argv[2]))
    walls = Walls(settings)
    kernel.adopt_orphans()  # of warm processes that are killed
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # how a process ended is told by who forked it
    keeper = Keeper(settings, walls, host_fd, lambda site, python: Boot(walls, python, program, sources_fd, site))
    keeper.serve()


class Keeper:
    """All state of one keeper."""

    def __init__(self, settings: Settings, walls: Walls, host_fd: int, boot: Callable[[str, str], Boot]) -> None:
        self._settings, self._walls, self._host_fd = settings, walls, host_fd
        self._loop = Loop()
        self._means = Means(self._loop, walls.isolated, settings.work_dir)
        site = tree.PACKAGES if walls.isolated else f"{settings.work_dir}/site-packages"
        booting = boot(site, sys.executable)
        self._warm = {kind: Warm(kind, booting, self._loop, self._warm_changed) for kind in preload.KINDS}
        self._places = Places(settings, walls)
        self._incoming, self._outgoing = Incoming(), Outgoing(self._loop, os.dup(host_fd), self._leave)
        self._waiting: deque[Callable[[], None]] = deque()
        self._running = 0
        self._leaving = False
        self._calls: set[Call] = set()
        self._sessions: dict[str, Session] = {}

    def serve(self) -> None:
        """Say what was found, then serve; returns when the host has gone and everything has ended."""
        lacking = self._walls.lacking if self._walls.isolated else []
        self._send({"layers": self._walls.present, "missing": self._walls.missing, "lacking": lacking})
        if lacking:
            return
        os.set_blocking(self._host_fd, False)
        self._loop.watch(self._host_fd, self._read)
        self._warm[preload.SMALL].start()
        self._loop.run()
        self._places.close()
        if self._walls.isolated:
            os.killpg(0, signal.SIGKILL)  # with this process, whatever first process may be left: nothing outlives it

    def _read(self) -> None:
        try:
            data = os.read(self._host_fd, _CHUNK)
        except BlockingIOError:
            return
        except ConnectionResetError:
            data = b""
        if not data:
            self._leave()
            return
        for message in self._incoming.feed(data):
            self._serve(message)

    def _serve(self, message: Message) -> None:
        what = message["op"]
        if what == "call":
            self._queue(lambda: self._start_call(message))
        elif what == "cell":
            self._queue(lambda: self._start_cell(message))
        elif what == "open":
            self._open(message)
        elif what == "close" and message["session"] in self._sessions:
            self._sessions[message["session"]].close()
        elif what == "warm":
            for warm in self._warm.values():
                warm.start()

    def _queue(self, start: Callable[[], None]) -> None:
        self._waiting.append(start)
        self._advance()

    def _advance(self) -> None:
        while self._waiting and self._running < self._settings.places:
            self._running += 1
            self._waiting.popleft()()

    def _finished(self) -> None:
        self._running -= 1
        self._advance()

    def _start_call(self, message: Message, *, again: bool = False) -> None:
        place = self._places.take_for_call()
        warm = self._warm[preload.kind_of(message["code"])]

        def done(result: Message) -> None:
            self._calls.discard(call)
            self._places.give_back(place)
            if not result["begun"] and result["cause"] is None and not again and not self._leaving:
                self._places.mend(place)  # what it stood on may have been taken away: once more, on new ground
                self._start_call(message, again=True)
                return
            self._send({"id": message["id"], "result": result})
            self._finished()

        allowance = self._allowance(message)
        output = (self._settings.output_bytes, self._settings.keep_chars)
        call = Call(self._means, warm, place, message, allowance=allowance, output=output, done=done)
        self._calls.add(call)
        call.start(self._limits(place, allowance, allowance.cpu_s))

    def _open(self, message: Message) -> None:
        place = self._places.take_for_session()
        name = message["session"]

        def opened(failure: str | None) -> None:
            self._send({"id": message["id"], "opened": failure})

        def gone() -> None:
            del self._sessions[name]
            self._places.give_back(place)
            self._places.mend(place)
            body = session.body
            self._send({"gone": name, "fault": session.fault, "failure": body.failure, "status": body.status})

        output = (self._settings.output_bytes, self._settings.keep_chars)
        session = Session(self._means, self._warm[preload.LARGE], place, output=output, opened=opened, gone=gone)
        self._sessions[name] = session
        session.open(self._limits(place, self._allowance(message), self._settings.session_total_s, session=True))

    def _start_cell(self, message: Message) -> None:
        session = self._sessions.get(message["session"])

        def done(result: Message) -> None:
            self._send({"id": message["id"], "result": result})
            self._finished()

        if session is None or session.body.pid == 0:
            done({"failure": "the session's process has ended", "ended": True})
            return
        cell: Message = {name: message[name] for name in ("cell", "code", "seed") if name in message}
        session.run(cell, self._allowance(message), done)

    def _allowance(self, message: Message) -> Allowance:
        return Allowance(wall_s=message["wall_s"], cpu_s=message["cpu_s"], memory_bytes=message["memory_bytes"])

    def _limits(self, place: Place, allowance: Allowance, cpu_s: float, *, session: bool = False) -> Limits:
        settings = self._settings
        processes = settings.processes
        if place.group is not None:
            place.group.limit(allowance.memory_bytes, processes + 1)
        return Limits(
            uid=place.uid,
            cpu_s=cpu_s,
            memory_bytes=allowance.memory_bytes,
            file_bytes=settings.file_bytes,
            processes=self._places.process_limit(),
            files_bytes=settings.file_bytes * _FILES,
            directory=private_directory(self._means),
            session=session,
            groups=len(place.group.entries) if place.group else 0,
            jail=self._walls.isolated,
        )

    def _leave(self) -> None:
        """The host has gone: end everything, and the loop when it has ended."""
        if self._leaving:
            return
        self._leaving = True
        self._loop.forget(self._host_fd)
        self._waiting.clear()
        for call in list(self._calls):
            call.body.kill()
        for session in list(self._sessions.values()):
            session.close()
        self._loop.later(time.monotonic() + _END_S, self._loop.stop)
        self._stop_when_empty()

    def _stop_when_empty(self) -> None:
        if self._calls or self._sessions:
            self._loop.later(time.monotonic() + 0.005, self._stop_when_empty)
            return
        for warm in self._warm.values():
            warm.kill()
        self._loop.stop()

    def _warm_changed(self) -> None:
        restarts = sum(max(0, warm.restarts) for warm in self._warm.values())
        self._send({"warm": sum(warm.ready for warm in self._warm.values()), "restarts": restarts})

    def _send(self, message: Message) -> None:
        if not self._leaving:
            self._outgoing.send(frame(message))
