"""Reading what a call writes while it runs, and noticing its end."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time

REPORT_BYTES = 32768
"""Most that is kept of a child's report."""
PATIENCE = 3
"""A starved call is ended at the latest after this many times its wall limit."""
_CHUNK = 65536
_ENDED, _NOTHING = 0, -1


class Watch:
    """Standard output, standard error and the report of one call, read as they come."""

    def __init__(self, out_fd: int, err_fd: int, report: socket.socket, most_bytes: int) -> None:
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.report = bytearray()
        self._most = most_bytes
        self._socket = report
        self._sinks = {out_fd: self.stdout, err_fd: self.stderr, report.fileno(): self.report}
        self._schedule_fd: int | None = None
        for fd in self._sinks:
            os.set_blocking(fd, False)

    @property
    def overflowed(self) -> bool:
        """Whether more was written than a call may."""
        return len(self.stdout) + len(self.stderr) > self._most

    def until_end(self, pid: int, started: float, wall_s: float) -> str | None:
        """Wait for the process's end, the deadline or too much output; the latter two are named.

        A call that got no core for over half of its time is given that time again, up to
        ``PATIENCE`` times its limit: an endless loop on a busy machine still is a timeout.
        """
        deadline = started + wall_s
        process = os.pidfd_open(pid)
        poller = select.poll()
        for fd in (process, *self._sinks):
            poller.register(fd, select.POLLIN)
        while True:
            now = time.monotonic()
            if now >= deadline:
                deadline = self._extended(now, started, wall_s)
                if now >= deadline:
                    return "timeout"
            left = deadline - now
            ready = [fd for fd, _ in poller.poll(left * 1000 + 1)]
            for fd in ready:
                if fd != process and self._read(fd) == _ENDED:
                    poller.unregister(fd)
            if self.overflowed:
                return "output_limit"
            if process in ready:
                return None

    def drain(self) -> None:
        """Take what is still there. Never waits: what held the other ends open is dead."""
        for fd in list(self._sinks):
            while not self.overflowed and self._read(fd) > 0:
                pass

    def waited_s(self) -> float | None:
        """Seconds that the call's first thread stood ready but got no core; null if the kernel does not say."""
        if self._schedule_fd is None:
            return None
        with contextlib.suppress(OSError, ValueError, IndexError):
            return int(os.pread(self._schedule_fd, 200, 0).split()[1]) / 1e9
        return None

    def _extended(self, now: float, started: float, wall_s: float) -> float:
        waited = self.waited_s() or 0.0
        if waited <= (now - started) / 2:
            return now
        return min(started + waited + wall_s, started + PATIENCE * wall_s)

    def _read(self, fd: int) -> int:
        """Bytes taken; ``_ENDED`` when every writer closed its end, ``_NOTHING`` when there is no more now."""
        sink = self._sinks[fd]
        try:
            chunk = self._first_report() if fd == self._socket.fileno() and not self.report else os.read(fd, _CHUNK)
        except BlockingIOError:
            return _NOTHING
        except ConnectionResetError:
            chunk = b""
        if not chunk:
            del self._sinks[fd]
            return _ENDED
        if sink is not self.report or len(sink) < REPORT_BYTES:
            sink += chunk
        return len(chunk)

    def _first_report(self) -> bytes:
        """The child's first message carries its schedstat file; it is sent before any user code runs."""
        chunk, fds, _, _ = socket.recv_fds(self._socket, _CHUNK, 1)
        if fds:
            self._schedule_fd = fds[0]
        return chunk
