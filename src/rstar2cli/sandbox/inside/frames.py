"""JSON messages with their length before them, over descriptors that must never block the keeper."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from typing import Any

from rstar2cli.sandbox.inside.loop import Loop

_LENGTH = struct.Struct("<I")
_CHUNK = 1 << 18


class Incoming:
    """Takes bytes, gives messages."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> list[Any]:
        """The messages that are complete with these bytes."""
        self._data += data
        messages = []
        while len(self._data) >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(self._data)
            end = _LENGTH.size + size
            if len(self._data) < end:
                break
            messages.append(json.loads(self._data[_LENGTH.size : end]))
            del self._data[:end]
        return messages


def frame(message: Any) -> bytes:
    """A message as bytes."""
    body = json.dumps(message).encode()  # ASCII: lone surrogates survive
    return _LENGTH.pack(len(body)) + body


class Outgoing:
    """Writes to a non-blocking descriptor, and keeps what does not fit until it does."""

    def __init__(self, loop: Loop, fd: int, gone: Callable[[], None]) -> None:
        """``fd`` is used for writing only; ``gone`` is told once that nobody reads any more."""
        self._loop, self._fd, self._gone = loop, fd, gone
        self._data = bytearray()
        os.set_blocking(fd, False)

    def send(self, data: bytes) -> None:
        """Write now or later."""
        waiting = bool(self._data)
        self._data += data
        if not waiting:
            self._write()

    def _write(self) -> None:
        try:
            while self._data:
                written = os.write(self._fd, self._data[:_CHUNK])
                del self._data[:written]
        except BlockingIOError:
            pass  # the reader is behind: go on when it has caught up
        except (BrokenPipeError, ConnectionResetError):
            self._data.clear()
            self._loop.forget(self._fd)
            self._gone()
            return
        self._loop.forget(self._fd)
        if self._data:
            self._loop.watch_writing(self._fd, self._write)
