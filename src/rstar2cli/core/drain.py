"""The request to stop after the current piece of work (first Ctrl-C or SIGTERM).

The command line installs the signal handlers and sets the flag; a room asks
``drain.check(...)`` between pieces of work, when all that is done is saved.
"""

from __future__ import annotations

import threading

from rstar2cli.core.errors import Stopped

_requested = threading.Event()
_signal_name = "signal"


def request(signal_name: str) -> None:
    """Ask every room to stop at its next safe point."""
    global _signal_name
    _signal_name = signal_name
    _requested.set()


def requested() -> bool:
    """Whether a stop was asked for."""
    return _requested.is_set()


def check(what: str, *, resumable: bool = True) -> None:
    """Raise :class:`Stopped` if a stop was asked for; ``what`` says how far the work came.

    ``resumable``: whether there is something to go on from.
    """
    if _requested.is_set():
        raise Stopped(f"stopped by {_signal_name}: {what}", resumable=resumable)


def reset() -> None:
    """Forget an earlier request (tests, several commands in one process)."""
    _requested.clear()
