"""The keeper's side of a session: one body that lives on, and the cells that it is given."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from typing import Any

from rstar2cli.sandbox.inside import census
from rstar2cli.sandbox.inside.body import Body, Means, Place
from rstar2cli.sandbox.inside.child import BEGUN, REPORT_BYTES
from rstar2cli.sandbox.inside.deadline import Allowance, Deadline
from rstar2cli.sandbox.inside.frames import Outgoing, frame
from rstar2cli.sandbox.inside.limits import Limits
from rstar2cli.sandbox.inside.output import Sink, Streams
from rstar2cli.sandbox.inside.warmth import Warm

Result = dict[str, Any]
_GRACE_S = 0.5
"""Time that a cell gets to end after an interrupt, before its session is killed."""
_IDLE_CHECK_S = 2.0


class Session:
    """``opened`` is told once whether it could be opened (null) or why not, ``gone`` when nothing is left of it."""

    def __init__(
        self,
        means: Means,
        warm: Warm,
        place: Place,
        *,
        output: tuple[int, int],
        opened: Callable[[str | None], None],
        gone: Callable[[], None],
    ) -> None:
        self._means, self._opened, self._gone = means, opened, gone
        self._loop = means.loop
        self._begun = False
        self.fault: str | None = None
        """What its code did between cells for which it was killed."""
        self._cell: _Cell | None = None
        self._cpu_charged = 0.0
        self._idle_cpu_s = 0.0
        self.body = Body(means, warm, place, began=lambda: None, ended=self._ended)
        self._streams = Streams(means.loop, *output, lambda: self._stop("output_limit"))
        self._report = Sink(means.loop, 1 << 62, self._reported)
        for sink in (self._streams.out, self._streams.err, self._report):
            sink.watch()
        reader, writer = os.pipe()
        self._cells_reader, self._cells_fd = reader, writer
        self._cells = Outgoing(means.loop, writer, lambda: None)  # its end is seen at its pidfd

    def open(self, limits: Limits) -> None:
        """Have it forked."""
        self._idle_cpu_s = limits.cpu_s
        writers = [self._streams.out.writer, self._streams.err.writer, self._report.writer]
        self.body.start(limits, [os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC), *writers, self._cells_reader])

    def run(self, message: dict[str, Any], allowance: Allowance, done: Callable[[Result], None]) -> None:
        """Give it a cell; ``done`` gets the raw result. One at a time."""
        self._streams.take()  # what came since the last cell belongs to none
        self._streams.reset()
        cell = _Cell(message["cell"], done)
        cell.deadline = Deadline(self._loop, self.body, allowance, self._stop)
        self._cell = cell
        cell.deadline.start(cpu_before=self._cpu_charged)
        self._cells.send(frame(message))

    def close(self) -> None:
        """End it."""
        self.body.kill()

    def _stop(self, cause: str) -> None:
        cell = self._cell
        if cell is None:
            if cause == "output_limit":
                self._kill_for("it wrote too much between cells")
            return
        if cell.cause is not None:
            return
        cell.cause = cause
        cell.waited, cell.seconds = cell.deadline.waited_s(), cell.deadline.seconds
        if cause in ("timeout", "cpu"):
            self.body.interrupt()
            self._loop.later(time.monotonic() + _GRACE_S, lambda: self._give_up(cell))
        else:
            self.body.kill()

    def _give_up(self, cell: _Cell) -> None:
        if self._cell is cell:
            self.body.kill()

    def _reported(self) -> None:
        """Read the lines of the session's own reports. It is untrusted: what makes no sense is skipped."""
        data = self._report.data
        if not self._begun:
            self._begun = data[:1] == BEGUN
            if not self._begun:
                return
            del data[:1]
            self._opened(None)
            self._loop.later(time.monotonic() + _IDLE_CHECK_S, self._check_idle)
        while (end := data.find(b"\n")) >= 0:
            line = bytes(data[:end])
            del data[: end + 1]
            self._line_came(line)
        if len(data) > REPORT_BYTES:
            data.clear()

    def _line_came(self, line: bytes) -> None:
        cell = self._cell
        report = _report(line)
        if cell is not None and report is not None and report.get("cell") == cell.number:
            self._cpu_charged = census.cpu_seconds(census.family(self.body.roots))
            status = report.get("status")
            self._finish(cell, (status & 0xFF) << 8 if isinstance(status, int) else 0, line, ended=False)

    def _finish(self, cell: _Cell, status: int | None, report: bytes, *, ended: bool) -> None:
        self._cell = None
        cell.deadline.stop()
        group = self.body.place.group
        cell.done(
            {
                "cause": cell.cause,
                "failure": self.body.failure,
                "status": status,
                "seconds": cell.seconds or cell.deadline.seconds,
                "waited_s": cell.waited,
                "cpu_seconds": max(0.0, self._cpu_charged - cell.deadline.cpu_before),
                "out_of_memory": group is not None and status == signal.SIGKILL and group.killed_for_memory(),
                "sealed": self._means.jail,
                "begun": True,
                "ended": ended,
                "report": report.decode("utf-8", "replace"),
                **self._streams.take(),
            }
        )

    def _check_idle(self) -> None:
        """Between cells too it may not use more than a cell's CPU time."""
        if self.body.pid == 0:
            return
        if self._cell is None:
            used = census.cpu_seconds(census.family(self.body.roots)) - self._cpu_charged
            if used > self._idle_cpu_s:
                self._kill_for("it used too much CPU time between cells")
        self._loop.later(time.monotonic() + _IDLE_CHECK_S, self._check_idle)

    def _kill_for(self, fault: str) -> None:
        self.fault = fault
        self.body.kill()

    def _ended(self) -> None:
        self._report.drain()
        failure = self.body.failure or self._report.data.decode("utf-8", "replace")[:1000]
        cell = self._cell
        if cell is not None:
            self._cpu_charged = self.body.cpu_seconds
            self._finish(cell, self.body.status, b"", ended=True)
        if not self._begun:
            self._opened(failure or f"it ended at once ({self.body.status})")
        self._streams.close()
        self._report.close()
        self._loop.close(self._cells_fd)
        self._gone()


class _Cell:
    def __init__(self, number: int, done: Callable[[Result], None]) -> None:
        self.number, self.done = number, done
        self.cause: str | None = None
        self.seconds = self.waited = 0.0
        self.deadline: Deadline


def _report(line: bytes) -> dict[str, Any] | None:
    try:
        report = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return report if isinstance(report, dict) else None
