"""Watch one call from outside: deadline, output, end, and the end of everything it started.

Runs in a process of its own, which is PID 1 of the call's namespace where there is one. The
user's process is forked before anything of the call is read here, so it inherits nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import shutil
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

from rstar2cli.sandbox.inside import child, kernel
from rstar2cli.sandbox.inside.limits import Limits

_CHUNK = 65536
_REAP_S = 5.0
_ENDED, _NOTHING = 0, -1


def supervise(code_fd: int, stdin_fd: int, limits: Limits, *, pid_namespace: bool, drop: bool) -> dict[str, Any]:
    """Run one call to its end and return the raw result (a JSON object)."""
    if not pid_namespace:
        kernel.adopt_orphans()
    home = tempfile.mkdtemp(dir=limits.work_dir)
    os.chdir(home)
    os.environ["HOME"] = os.environ["TMPDIR"] = home
    if drop:
        os.chown(home, limits.uid, limits.uid)
    pipes = [os.pipe() for _ in range(3)]
    started = time.monotonic()
    pid = os.fork()
    if pid == 0:
        child.become(code_fd, stdin_fd, pipes[0][1], pipes[1][1], pipes[2][1], limits, drop)
    for _, write_end in pipes:
        os.close(write_end)
    watch = _Watch([read_end for read_end, _ in pipes], limits)
    cause = watch.until_end(pid, started + limits.wall_s)
    seconds = time.monotonic() - started
    status = _kill_all(pid, pid_namespace)
    watch.drain()
    os.chdir("/")
    shutil.rmtree(home, ignore_errors=True)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "cause": cause or ("output_limit" if watch.overflowed else None),
        "status": status,
        "seconds": seconds,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "begun": watch.data[2][:1] == child.BEGUN,
        "report": bytes(watch.data[2][1 : child.REPORT_BYTES]).decode("utf-8", "replace"),
        **_streams(watch, limits.keep_chars),
    }


class _Watch:
    """Reads stdout, stderr and the report as they come."""

    def __init__(self, fds: list[int], limits: Limits) -> None:
        self.data = [bytearray() for _ in fds]
        self._limits = limits
        self._open = {fd: place for place, fd in enumerate(fds)}
        for fd in fds:
            os.set_blocking(fd, False)

    @property
    def overflowed(self) -> bool:
        """Whether more was written than a call may."""
        return len(self.data[0]) + len(self.data[1]) > self._limits.output_bytes

    def until_end(self, pid: int, deadline: float) -> str | None:
        """Wait for the process's end, the deadline or too much output; the latter two are named."""
        process = os.pidfd_open(pid)
        poller = select.poll()
        for fd in (process, *self._open):
            poller.register(fd, select.POLLIN)
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return "timeout"
            ready = poller.poll(left * 1000 + 1)
            for fd, _ in ready:
                if fd != process and self._read(fd) == _ENDED:
                    poller.unregister(fd)
            if self.overflowed:
                return "output_limit"
            if any(fd == process for fd, _ in ready):
                return None

    def drain(self) -> None:
        """Take what is still in the pipes. Never waits: what held them open is dead."""
        for fd in list(self._open):
            while not self.overflowed and self._read(fd) > 0:
                pass

    def _read(self, fd: int) -> int:
        """Bytes taken; ``_ENDED`` when every writer closed its end, ``_NOTHING`` when there is no more now."""
        place = self._open[fd]
        try:
            chunk = os.read(fd, _CHUNK)
        except BlockingIOError:
            return _NOTHING
        if not chunk:
            del self._open[fd]
            return _ENDED
        if place < 2 or len(self.data[2]) < child.REPORT_BYTES:
            self.data[place] += chunk
        return len(chunk)


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


def _streams(watch: _Watch, keep: int) -> dict[str, Any]:
    result: dict[str, Any] = {"truncated": False}
    for name, data in (("stdout", watch.data[0]), ("stderr", watch.data[1])):
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
