"""A warm process: it has the packages of its kind loaded, and forks calls. It never sees their data.

It stands inside the jail's file tree, without network, and serves its keeper over a socket, one
order at a time: fork a process with these descriptors, or tell how one ended.
"""

from __future__ import annotations

import builtins
import gc
import json
import os
import socket
import sys
from _sitebuiltins import Quitter
from typing import Any

from rstar2cli.sandbox.inside import child, kernel, preload
from rstar2cli.sandbox.inside.limits import Limits
from rstar2cli.sandbox.inside.seccomp import Filter

ORDER_BYTES = 4096
_MOST_DESCRIPTORS = 16


def main(control_fd: int, kind: str, *, jail: bool, memfd: bool, site: str) -> None:
    """Load, then serve until the keeper's end of the socket closes."""
    sys.path.append(site)
    sys.set_int_max_str_digits(0)
    os.environ.update(HOME="/tmp", TMPDIR="/tmp")
    calls = None
    if jail:
        kernel.no_new_privileges()
        kernel.empty_bounding_set()
        calls = Filter(memfd=memfd)
    else:
        kernel.adopt_orphans()
    failures = preload.load(kind)
    _like_a_fresh_interpreter()
    with socket.socket(fileno=control_fd) as control:
        control.send(json.dumps({"ready": failures}).encode())
        _serve(control, calls)


def _like_a_fresh_interpreter() -> None:
    builtins.exit = Quitter("exit", "Ctrl-D")  # absent without site
    builtins.quit = Quitter("quit", "Ctrl-D")
    sys.meta_path[:] = [finder for finder in sys.meta_path if finder.__module__ != "__main__"]
    child.prepare()
    gc.collect()
    gc.freeze()  # a collection in a fork would touch, and so copy, every page


def _serve(control: socket.socket, calls: Filter | None) -> None:
    ours = [name for name in sys.modules if name.partition(".")[0] == "rstar2cli"]
    alive: set[int] = set()
    while True:
        message, fds, _, _ = socket.recv_fds(control, ORDER_BYTES, _MOST_DESCRIPTORS)
        if not message:
            return
        order = json.loads(message)
        if "end" in order:
            alive.discard(order["end"])
            answer = _end(order["end"], None if calls else alive)
        else:
            answer = _fork(order, fds, calls, ours)
            alive.add(answer.get("pid", 0))
        for fd in fds:
            os.close(fd)
        control.send(json.dumps(answer).encode())


def _fork(order: dict[str, Any], fds: list[int], calls: Filter | None, ours: list[str]) -> dict[str, Any]:
    """Fork a process into the PID namespace that the last descriptor names."""
    limits = Limits(**order)
    try:
        if limits.jail:
            # for children only, and until the next call's: there is no need, and without root no right, to go back
            kernel.set_namespace(fds[-1], kernel.NEWPID)
        pid = kernel.fork()
    except OSError as error:
        return {"failed": str(error)}
    if pid == 0:
        child.become(fds[: child.CHANNELS + limits.groups], limits, calls, ours)
    return {"pid": pid}


def _end(pid: int, alive: set[int] | None) -> dict[str, Any]:
    """How a process ended. Without a namespace all orphans, which are children not ``alive``, are killed here."""
    try:
        _, status, usage = os.wait4(pid, 0)
    except ChildProcessError:
        return {"failed": "no such child"}
    cpu = usage.ru_utime + usage.ru_stime
    if alive is not None:
        cpu += _kill_orphans(alive)
    return {"status": status, "cpu_seconds": cpu}


def _kill_orphans(alive: set[int]) -> float:
    """Kill and reap every child that is not one of the calls; the CPU time they had used."""
    import signal
    import time

    cpu = 0.0
    until = time.monotonic() + 5
    while time.monotonic() < until:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            orphans = [int(pid) for pid in file.read().split() if int(pid) not in alive]
        if not orphans:
            break
        for pid in orphans:
            os.kill(pid, signal.SIGKILL)
            _, _, usage = os.wait4(pid, 0)
            cpu += usage.ru_utime + usage.ru_stime
    return cpu
