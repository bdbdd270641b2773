"""Signals: the first Ctrl-C or SIGTERM drains, the second stops at once; a closed pipe is quiet."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType

from rstar2cli.cli.say import say, say_in_handler
from rstar2cli.core import drain

INTERRUPTED = "error: interrupted"
_EXIT = {signal.SIGINT: 130, signal.SIGTERM: 143}


def _handle(number: int, _: FrameType | None) -> None:
    if drain.requested():
        # Nothing may run any more: parts that are not finished have no final name.
        say_in_handler("stopped at once")
        os._exit(_EXIT[signal.Signals(number)])
    drain.request(signal.Signals(number).name)
    say_in_handler("stopping after the current piece of work; once more to stop at once")


@contextlib.contextmanager
def draining() -> Iterator[None]:
    """For stages: the first signal asks for a drain instead of raising ``KeyboardInterrupt``."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _handle) for number in _EXIT}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        drain.reset()


@contextlib.contextmanager
def handlers() -> Iterator[None]:
    """For every command: SIGTERM ends with 143 after cleaning up, as Ctrl-C does with 130."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def terminate(number: int, frame: FrameType | None) -> None:
        raise SystemExit(_EXIT[signal.Signals(number)])

    before = {signal.SIGTERM: signal.signal(signal.SIGTERM, terminate)}
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # ignored by those who started it, as nohup does
        before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def interrupted() -> int:
    """Say that Ctrl-C ended the command; its exit code."""
    say(INTERRUPTED)
    return _EXIT[signal.SIGINT]


def quiet_pipe() -> int:
    """End quietly when the reader of our output has gone: what is left is thrown away."""
    # the interpreter flushes stdout once more at exit
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141
