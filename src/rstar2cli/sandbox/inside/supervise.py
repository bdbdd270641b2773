"""Watch one call from outside: deadline, output, end, and the end of everything it started.

Runs in a process of its own, which is PID 1 of the call's namespace where there is one. The
user's process is forked before anything of the call is read here, so it inherits nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import socket
import tempfile
import time
from pathlib import Path
from typing import Any

from rstar2cli.sandbox.inside import child, kernel
from rstar2cli.sandbox.inside.limits import Limits
from rstar2cli.sandbox.inside.watch import Watch

_REAP_S = 5.0


def supervise(
    code_fd: int, stdin_fd: int, limits: Limits, *, home: str | None, pid_namespace: bool, drop: bool
) -> dict[str, Any]:
    """Run one call to its end and return the raw result (a JSON object).

    ``home`` is an empty directory that disappears with this process's namespace; null = make and delete one.
    """
    if not pid_namespace:
        kernel.adopt_orphans()
    directory = home or tempfile.mkdtemp(dir=limits.work_dir)
    os.chdir(directory)
    os.environ["HOME"] = os.environ["TMPDIR"] = directory
    if drop:
        os.chown(directory, limits.uid, limits.uid)
    out, err = os.pipe(), os.pipe()
    report, childs_report = socket.socketpair()
    started = time.monotonic()
    pid = os.fork()
    if pid == 0:
        child.become(code_fd, stdin_fd, out[1], err[1], childs_report, limits, drop)
    os.close(out[1])
    os.close(err[1])
    childs_report.close()
    watch = Watch(out[0], err[0], report, limits.output_bytes)
    cause = watch.until_end(pid, started, limits.wall_s)
    seconds = time.monotonic() - started
    waited = watch.waited_s()  # before the kill: the kernel forgets it with the process
    status = _kill_all(pid, pid_namespace)
    watch.drain()
    if home is None:
        os.chdir("/")
        shutil.rmtree(directory, ignore_errors=True)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "cause": cause or ("output_limit" if watch.overflowed else None),
        "status": status,
        "seconds": seconds,
        "waited_s": waited,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "begun": watch.report[:1] == child.BEGUN,
        "report": bytes(watch.report[1:]).decode("utf-8", "replace"),
        **_streams(watch, limits.keep_chars),
    }


def _kill_all(pid: int, pid_namespace: bool) -> int:
    """End every process of the call and return the wait status of its first one."""
    status = 0
    until = time.monotonic() + _REAP_S
    while time.monotonic() < until:
        _kill_round(pid, pid_namespace)
        try:
            while True:
                ended, ended_status = os.waitpid(-1, os.WNOHANG)
                if ended == 0:
                    break
                status = ended_status if ended == pid else status
        except ChildProcessError:
            return status
        time.sleep(0.0005)
    return status


def _kill_round(pid: int, pid_namespace: bool) -> None:
    if pid_namespace:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)  # PID 1: all others of the namespace
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(OSError):
        for descendant in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(descendant), signal.SIGKILL)


def _streams(watch: Watch, keep: int) -> dict[str, Any]:
    result: dict[str, Any] = {"truncated": False}
    for name, data in (("stdout", watch.stdout), ("stderr", watch.stderr)):
        text = data.decode("utf-8", "replace")
        if len(text) > keep:
            head = (keep + 1) // 2
            text = f"{text[:head]}…[{len(text) - keep} characters cut]…{text[len(text) - keep + head :]}"
            result["truncated"] = True
        result[name] = text
        result[name + "_bytes"] = len(data)
    return result


def write_result(fd: int, result: dict[str, Any]) -> None:
    """Send the result to the host; its end of the pipe may be gone."""
    with contextlib.suppress(BrokenPipeError), open(fd, "wb") as file:
        file.write(json.dumps(result).encode() + b"\n")
