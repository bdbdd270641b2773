"""One stateless call: a body, its output, its deadline, and the raw result."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from typing import Any

from rstar2cli.sandbox.inside.body import Body, Means, Place
from rstar2cli.sandbox.inside.child import BEGUN, REPORT_BYTES
from rstar2cli.sandbox.inside.deadline import Allowance, Deadline
from rstar2cli.sandbox.inside.limits import Limits
from rstar2cli.sandbox.inside.loop import Timer
from rstar2cli.sandbox.inside.output import Sink, Streams
from rstar2cli.sandbox.inside.warmth import Warm

_SHORT_S = 0.004
"""Most calls are over before: their output is read at their end, without a wakening for each line."""
Result = dict[str, Any]


class Call:
    """Runs once; ``done`` gets the raw result when nothing of the call is left."""

    def __init__(
        self,
        means: Means,
        warm: Warm,
        place: Place,
        request: dict[str, Any],
        *,
        allowance: Allowance,
        output: tuple[int, int],
        done: Callable[[Result], None],
    ) -> None:
        """``output``: most bytes that may be written, and characters of each stream that are kept."""
        self._done, self._means = done, means
        self._cause: str | None = None
        self._waited = self._seconds = 0.0
        self.body = Body(means, warm, place, began=self._began, ended=self._ended)
        self._deadline = Deadline(means.loop, self.body, allowance, self._stop)
        self._streams = Streams(means.loop, *output, lambda: self._stop("output_limit"))
        self._report = Sink(means.loop, REPORT_BYTES, lambda: None)
        self._request = request
        self._patience: Timer | None = None

    def start(self, limits: Limits) -> None:
        """Have it forked."""
        request = self._request
        text = json.dumps({name: request[name] for name in ("code", "seed", "files")})
        writers = [self._streams.out.writer, self._streams.err.writer, self._report.writer]
        self.body.start(limits, [_given(request["stdin"].encode("utf-8", "replace")), *writers, _given(text.encode())])

    def _began(self) -> None:
        self._deadline.start()
        self._patience = self._means.loop.later(time.monotonic() + _SHORT_S, self._watch)

    def _watch(self) -> None:
        for sink in (self._streams.out, self._streams.err, self._report):
            sink.watch()

    def _stop(self, cause: str) -> None:
        if self._cause is None:
            self._cause = cause
            self._waited, self._seconds = self._deadline.waited_s(), self._deadline.seconds
            self.body.kill()

    def _ended(self) -> None:
        self._deadline.stop()
        if self._patience is not None:
            self._patience.cancel()
        streams = self._streams.take()
        self._report.drain()
        overflow = "output_limit" if self._streams.overflow else None
        self._streams.close()
        self._report.close()
        report = bytes(self._report.data)
        begun = report[:1] == BEGUN
        group = self.body.place.group
        self._done(
            {
                "cause": self._cause or overflow,
                "failure": self.body.failure,
                "status": self.body.status,
                "seconds": self._seconds or self._deadline.seconds,
                "waited_s": self._waited,
                "cpu_seconds": self.body.cpu_seconds,
                "out_of_memory": group is not None and self.body.status == signal.SIGKILL and group.killed_for_memory(),
                "sealed": self._means.jail,
                "begun": begun,
                "report": report[1:].decode("utf-8", "replace") if begun else report.decode("utf-8", "replace"),
                **streams,
            }
        )


def _given(data: bytes) -> int:
    """A descriptor from which these bytes are read."""
    if not data:
        return os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    fd = os.memfd_create("call")
    written = 0
    while written < len(data):
        written += os.pwrite(fd, data[written:], written)
    return fd
