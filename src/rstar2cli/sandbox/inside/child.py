"""The process that becomes the user's code. It is forked clean: it has seen no other call."""

from __future__ import annotations

import atexit
import base64
import contextlib
import fcntl
import io
import json
import os
import random
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from rstar2cli.sandbox.inside import cells, execute, jail
from rstar2cli.sandbox.inside.limits import Limits
from rstar2cli.sandbox.inside.seccomp import Filter

BEGUN = b"\n"
"""First byte of a report: everything is set up and the user's code starts. Without it a failure is ours."""
REPORT_BYTES = 32768
"""Most that is read of a report."""
REPORT_FD = 3
CHANNELS = 5
"""Descriptors that every process is given: stdin, stdout, stderr, report, and the call or the cells."""
_MOST_DESCRIPTORS = 65536
_HIGH = 16


def become(fds: Sequence[int], limits: Limits, calls: Filter | None, ours: Sequence[str]) -> NoReturn:
    """Take the descriptors, limits and identity of a call or session, run its code and exit.

    ``fds``: the channels, then entries of control groups. ``ours``: modules that the code must not find.
    """
    status = 1
    report = fds[REPORT_FD]
    try:
        jail.enter(limits, fds[CHANNELS:], calls)
        _arrange(fds[:CHANNELS])
        report = REPORT_FD
        for name in ours:
            del sys.modules[name]
        status = _serve_cells() if limits.session else _serve_call()
    except BaseException as error:  # noqa: BLE001 - our own setting up failed: the supervisor reads why
        with contextlib.suppress(OSError):
            os.write(report, repr(error).encode())
    finally:
        os._exit(status)


def _arrange(fds: Sequence[int]) -> None:
    """The channels become descriptors 0 to 4, and no other is open."""
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD, _HIGH) for fd in fds]
    for target, fd in enumerate(high):
        os.dup2(fd, target, inheritable=target < REPORT_FD)
    os.closerange(CHANNELS, _MOST_DESCRIPTORS)


def _serve_call() -> int:
    call = json.loads(os.pread(CHANNELS - 1, os.fstat(CHANNELS - 1).st_size, 0))
    os.close(CHANNELS - 1)
    seed_all(call["seed"])
    for name, data in call["files"].items():
        _put(name, base64.b64decode(data))
    os.write(REPORT_FD, BEGUN)
    status = 1
    try:
        status = _guarded(lambda: execute.Program().run(call["code"], execute.FILE))
        # what an interpreter does at its end: wait for threads, then call the exit functions
        threading = sys.modules.get("threading")
        if threading is not None:
            _guarded(threading._shutdown)
        _guarded(atexit._run_exitfuncs)
    finally:
        _flush()
    return status


def _serve_cells() -> int:
    cells_file = open(CHANNELS - 1, "rb")  # noqa: SIM115 - lives as long as the process
    os.write(REPORT_FD, BEGUN)
    cells.serve(cells_file, lambda report: _send(cells.line(report)), seed=seed_all, flush=_flush)
    return 0


def _put(name: str, data: bytes) -> None:
    """Write a file that came with the call; the private directory is all that can be written."""
    directory = os.path.dirname(name)
    if directory:
        os.makedirs(directory, exist_ok=True)
    with open(name, "wb") as file:
        file.write(data)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BaseException):  # closed or replaced by the user's code
            stream.flush()


def _guarded(function: Callable[[], Any]) -> int:
    try:
        function()
    except SystemExit as stop:
        return execute.exit_status(stop)
    except BaseException as error:  # noqa: BLE001 - whatever the code raises is its result
        _send(cells.line(execute.report(error)))
        return 1
    return 0


def _send(report: bytes) -> None:
    with contextlib.suppress(OSError):  # the code may have closed it
        os.write(REPORT_FD, report)


def prepare() -> None:
    """Make the world that code finds, once in each warm process. The streams are of descriptors yet to come."""
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(open(0, "rb", closefd=False), encoding="utf-8", errors="replace")  # type: ignore[misc]  # noqa: SIM115
    sys.stdout = sys.__stdout__ = _output(1)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _output(2)  # type: ignore[misc]
    sys.argv = ["code"]


def seed_all(seed: int) -> None:
    """One source of randomness for everything that would ask the kernel (numpy's seeds, uuid4, secrets)."""
    source = random.Random(f"urandom {seed}")
    os.urandom = random._urandom = source.randbytes  # type: ignore[attr-defined]
    random.seed(seed)
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        # loaded before the fork: its global state would be the same in every call whatever the seed
        numpy_random.seed(seed % 2**32)


def _output(fd: int) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        open(fd, "wb", closefd=False),
        encoding="utf-8",
        errors="backslashreplace",
        line_buffering=True,
    )
