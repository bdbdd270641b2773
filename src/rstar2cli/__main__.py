"""The ``rstar2`` command, ``python -m rstar2cli``, and what ``accelerate launch -m rstar2cli`` starts."""

from __future__ import annotations

import contextlib
import os
import signal
from types import FrameType

_INTERRUPTED = 130


def _interrupted(_: int, __: FrameType | None) -> None:
    # At once: an exception would show a traceback, or be taken by the import under way for a fault of its own.
    with contextlib.suppress(OSError):
        os.write(2, b"error: interrupted\n")
    os._exit(_INTERRUPTED)


def main() -> None:
    """Run the command line; Ctrl-C ends it in one line from the first import on."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupted)
    from rstar2cli.cli.app import main as run

    run()


if __name__ == "__main__":
    main()
