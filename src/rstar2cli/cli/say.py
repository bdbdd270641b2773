"""What people read while a command works: stderr, where a reader who has gone must cost no work."""

from __future__ import annotations

import contextlib
import os
import sys

_STDERR = 2


def say(text: str, *, end: str = "\n") -> None:
    """Write to stderr, at once. If nobody can take it the rest of the command is silent; never raises ``OSError``."""
    try:
        print(text, end=end, file=sys.stderr, flush=True)
    except BlockingIOError:
        pass  # full for the moment: kept in the buffer
    except OSError:
        _mute()


def say_in_handler(text: str) -> None:
    """The same for signal handlers: past the buffer, which the interrupted code may be using."""
    with contextlib.suppress(OSError):
        os.write(_STDERR, text.encode() + b"\n")


def occupy_stderr() -> None:
    """If the command was started without a stderr, fill its place.

    Else the next file that is opened gets its number, and what libraries write there goes into the data.
    """
    if sys.stderr is not None:
        return
    sink = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - lasts as long as the process
    try:
        os.fstat(_STDERR)
    except OSError:
        os.dup2(sink.fileno(), _STDERR)
    sys.stderr = sink


def _mute() -> None:
    """Throw away what stderr still gets: its buffer is flushed at exit, which would else end with code 120."""
    with contextlib.suppress(OSError, ValueError):
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, sys.stderr.fileno())
        os.close(sink)
