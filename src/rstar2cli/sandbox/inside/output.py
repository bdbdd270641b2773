"""What a process writes to standard output and error, taken as it comes and never waited for."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from rstar2cli.sandbox.inside.loop import Loop

_CHUNK = 65536


class Sink:
    """The reading end of one pipe. ``more`` is told after every piece."""

    def __init__(self, loop: Loop, most: int, more: Callable[[], None]) -> None:
        """``most``: bytes kept; the rest is read, counted and dropped. :attr:`writer` is the other end, to be sent."""
        self._reader, self.writer = os.pipe()
        os.set_blocking(self._reader, False)
        self.data = bytearray()
        self.total = 0
        self._most, self._more, self._loop = most, more, loop
        self._open = True

    def watch(self) -> None:
        """Take what comes from now on. Until then it stays in the pipe, which holds what most calls write."""
        if self._open:
            self._loop.watch(self._reader, self._ready)

    def drain(self) -> None:
        """Take what is there now."""
        while self._open and self._read():
            pass

    def reset(self) -> None:
        """Begin anew: what comes from now on belongs to another cell."""
        self.data.clear()
        self.total = 0

    def close(self) -> None:
        """Read no more."""
        if self._open:
            self._open = False
            self._loop.close(self._reader)

    def _ready(self) -> None:
        self._read()
        self._more()

    def _read(self) -> bool:
        """Whether there may be more."""
        try:
            chunk = os.read(self._reader, _CHUNK)
        except BlockingIOError:
            return False
        if not chunk:
            self.close()
            return False
        self.total += len(chunk)
        self.data += chunk[: max(0, self._most - len(self.data))]
        return True


class Streams:
    """Standard output and error of one process, with a limit on both together."""

    def __init__(self, loop: Loop, most: int, keep_chars: int, overflowed: Callable[[], None]) -> None:
        self._most, self._keep, self._overflowed = most, keep_chars, overflowed
        self.out = Sink(loop, most + 1, self._check)
        self.err = Sink(loop, most + 1, self._check)

    @property
    def overflow(self) -> bool:
        """Whether more was written than may be."""
        return self.out.total + self.err.total > self._most

    def take(self) -> dict[str, Any]:
        """The text so far, with what is in the pipes now."""
        result: dict[str, Any] = {"truncated": False}
        for name, sink in (("stdout", self.out), ("stderr", self.err)):
            if not self.overflow:
                sink.drain()
            text = sink.data.decode("utf-8", "replace")
            if len(text) > self._keep:
                head = (self._keep + 1) // 2
                text = (
                    f"{text[:head]}…[{len(text) - self._keep} characters cut]…{text[len(text) - self._keep + head :]}"
                )
                result["truncated"] = True
            result[name] = text
            result[name + "_bytes"] = sink.total
        return result

    def reset(self) -> None:
        """Begin anew for the next cell."""
        self.out.reset()
        self.err.reset()

    def close(self) -> None:
        """Read no more."""
        self.out.close()
        self.err.close()

    def _check(self) -> None:
        if self.overflow:
            self._overflowed()
