"""One stateless call: a body, its output, its deadline, and the raw result."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable
from typing import Any

from rstar2cli.sandbox.inside.body import Body, Means, Place, private_directory
from rstar2cli.sandbox.inside.child import BEGUN, REPORT_BYTES
from rstar2cli.sandbox.inside.deadline import Allowance, Deadline
from rstar2cli.sandbox.inside.limits import Limits
from rstar2cli.sandbox.inside.output import Sink, Streams
from rstar2cli.sandbox.inside.warmth import Warm

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
        self._oom_before = place.group.killed_for_memory() if place.group else 0
        self.body = Body(means, warm, place, began=self._began, ended=self._ended)
        self._deadline = Deadline(means.loop, self.body, allowance, self._stop)
        self._streams = Streams(means.loop, *output, lambda: self._stop("output_limit"))
        self._report = Sink(means.loop, REPORT_BYTES, lambda: None)
        self._request = request

    def start(self, limits: Limits) -> None:
        """Have it forked."""
        request = self._request
        text = json.dumps({name: request[name] for name in ("code", "seed", "files")})
        writers = [self._streams.out.writer, self._streams.err.writer, self._report.writer]
        limits = dataclasses.replace(limits, directory=private_directory(self._means))
        self.body.start(limits, [_given(request["stdin"].encode("utf-8", "replace")), *writers, _given(text.encode())])

    def _began(self) -> None:
        self._deadline.start()

    def _stop(self, cause: str) -> None:
        if self._cause is None:
            self._cause = cause
            self._waited, self._seconds = self._deadline.waited_s(), self._deadline.seconds
            self.body.kill()

    def _ended(self) -> None:
        self._deadline.stop()
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
                "out_of_memory": bool(group) and group.killed_for_memory() > self._oom_before if group else False,
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
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
