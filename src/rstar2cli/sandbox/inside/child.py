"""The process that becomes the user's code. It is forked clean: it has seen no other call."""

from __future__ import annotations

import atexit
import contextlib
import io
import json
import os
import random
import socket
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from rstar2cli.sandbox.inside import execute, kernel
from rstar2cli.sandbox.inside import limits as limit_setting
from rstar2cli.sandbox.inside.limits import Limits
from rstar2cli.sandbox.inside.watch import REPORT_BYTES

BEGUN = b"\n"
"""First byte of a report: everything is set up and the user's code starts. Without it a failure is ours."""
_REPORT_FD = 3


def become(
    code_fd: int, stdin_fd: int, out_fd: int, err_fd: int, report: socket.socket, limits: Limits, drop: bool
) -> NoReturn:
    """Take the descriptors, limits and identity of a call, run its code and exit. Never returns."""
    status = 1
    try:
        os.setsid()
        seed, code = _read(code_fd)
        _arrange(stdin_fd, out_fd, err_fd, report.detach())
        _identity(limits, drop)
        limit_setting.apply(limits, own_uid=drop)
        _interpreter(seed, limits)
        _begin()
        status = _run(code)
    except BaseException as error:  # noqa: BLE001 - our own setting up failed: say so in the keeper's log
        os.write(2, f"call not begun: {error!r}\n".encode())
    finally:
        os._exit(status)


def _begin() -> None:
    """Say that all is set up, and hand over the file that tells how long we wait for a core."""
    schedule = []
    with contextlib.suppress(OSError):
        schedule.append(os.open("/proc/self/schedstat", os.O_RDONLY))
    with socket.socket(fileno=os.dup(_REPORT_FD)) as report:
        socket.send_fds(report, [BEGUN], schedule) if schedule else report.send(BEGUN)
    for fd in schedule:
        os.close(fd)


def _run(code: str) -> int:
    try:
        status = _guarded(lambda: execute.run(code))
        # what an interpreter does at its end: wait for threads, then call the exit functions
        threading = sys.modules.get("threading")
        if threading is not None:
            _guarded(threading._shutdown)
        _guarded(atexit._run_exitfuncs)
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(BaseException):  # closed or replaced by the user's code
                stream.flush()
    return status


def _guarded(function: Callable[[], Any]) -> int:
    try:
        function()
    except SystemExit as stop:
        return execute.exit_status(stop)
    except BaseException as error:  # noqa: BLE001 - whatever the code raises is its result
        _report(error)
        return 1
    return 0


def _report(error: BaseException) -> None:
    text = b""
    with contextlib.suppress(BaseException):
        text = json.dumps(execute.describe(error)).encode()
    if not text:
        text = json.dumps({"error": type(error).__name__, "memory": isinstance(error, MemoryError)}).encode()
    with contextlib.suppress(OSError):
        os.write(_REPORT_FD, text[: REPORT_BYTES - 1])


def _read(code_fd: int) -> tuple[int, str]:
    with open(code_fd, "rb") as file:
        header = json.loads(file.readline())
        return int(header["seed"]), file.read().decode("utf-8", "surrogatepass")


def _arrange(stdin_fd: int, out_fd: int, err_fd: int, report_fd: int) -> None:
    """Descriptors 0–2 and the report, and no other."""
    high = [os.dup(fd) for fd in (stdin_fd, out_fd, err_fd, report_fd)]  # out of the way of 0–3
    for target, fd in enumerate(high):
        os.dup2(fd, target, inheritable=target != _REPORT_FD)
    os.closerange(_REPORT_FD + 1, 4096)


def _identity(limits: Limits, drop: bool) -> None:
    if drop:
        os.setgroups([])
        os.setresgid(limits.uid, limits.uid, limits.uid)
        os.setresuid(limits.uid, limits.uid, limits.uid)
    kernel.give_up_privileges()


def _interpreter(seed: int, limits: Limits) -> None:
    """A fresh ``__main__`` world: streams, seeds, path, no trace of our modules."""
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(open(0, "rb", closefd=False), encoding="utf-8", errors="replace")  # type: ignore[misc]  # noqa: SIM115
    sys.stdout = sys.__stdout__ = _output(1)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _output(2)  # type: ignore[misc]
    sys.argv = ["code"]
    sys.path[:] = [*sys.path, *limits.packages]
    sys.set_int_max_str_digits(0)
    # One source of randomness for everything that would ask the kernel (numpy's seeds, uuid4, secrets).
    source = random.Random(f"urandom {seed}")
    os.urandom = random._urandom = source.randbytes  # type: ignore[attr-defined]
    random.seed(seed)
    for name in [name for name in sys.modules if name.split(".")[0] == "rstar2cli"]:
        del sys.modules[name]
    sys.meta_path.insert(0, _Hidden)


class _Hidden:
    """Keeps the project out of reach where it is installed among the packages that code may import."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Refuse our own name; the other finders answer for all others."""
        if name.partition(".")[0] == "rstar2cli":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def _output(fd: int) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        open(fd, "wb", closefd=False),
        encoding="utf-8",
        errors="backslashreplace",
        line_buffering=True,
    )
