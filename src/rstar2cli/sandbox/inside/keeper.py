"""A warm process that starts calls by forking, one at a time, and never sees their data.

The host sends three descriptors per call (code, stdin, result); the keeper hands them to a
supervisor that it forks. Namespaces that cost time are entered once, here; the PID namespace
is new for each call. The keeper ends when the host's end of the control socket does.
"""

from __future__ import annotations

import builtins
import gc
import importlib
import json
import os
import signal
import socket
import sys
from _sitebuiltins import Quitter
from collections.abc import Callable
from pathlib import Path

from rstar2cli.sandbox.inside import kernel, supervise
from rstar2cli.sandbox.inside.limits import Limits

# Loaded once, shared by all calls: what most programs import, and cheap to hold.
_WARM = (
    *("bisect", "collections", "copy", "datetime", "decimal", "fractions", "functools", "heapq", "io", "itertools"),
    *("math", "operator", "random", "re", "statistics", "string", "threading", "time", "typing"),
)

_FILES = 4
"""Files of the largest size that a call's directory holds where it has a file system of its own."""

_TMP = "/tmp"


def main() -> None:
    """Serve the control socket whose descriptor is the first argument; limits are the second, as JSON."""
    if len(sys.argv) == 3:  # once more, at addresses that every run shares
        kernel.same_addresses_in_every_run()
        os.execv(sys.executable, [*sys.orig_argv, "again"])
    control = socket.socket(fileno=int(sys.argv[1]))
    limits = Limits(**json.loads(sys.argv[2]))
    layers = _layers(limits)
    for name in _WARM:
        importlib.import_module(name)
    builtins.exit = Quitter("exit", "Ctrl-D")  # absent without site
    builtins.quit = Quitter("quit", "Ctrl-D")
    gc.collect()
    gc.freeze()  # a collection in a fork would touch, and so copy, every page
    control.send(json.dumps({"ready": True, "layers": layers}).encode())
    while True:
        message, fds, _, _ = socket.recv_fds(control, 16, 3)
        if not message:
            return
        _call(fds, control, limits, layers)
        control.send(b"done")


def _call(fds: list[int], control: socket.socket, limits: Limits, layers: list[str]) -> None:
    code_fd, stdin_fd, result_fd = fds
    try:
        pid = os.fork()
    except OSError as error:
        supervise.write_result(result_fd, {"setup_failed": f"fork: {error.strerror}"})
        os.close(code_fd)
        os.close(stdin_fd)
        return
    if pid == 0:
        try:
            control.close()
            kernel.die_with_parent(signal.SIGKILL)
            _start(code_fd, stdin_fd, result_fd, limits, layers)
        finally:
            os._exit(0)
    for fd in fds:
        os.close(fd)
    os.waitpid(pid, 0)


def _start(code_fd: int, stdin_fd: int, result_fd: int, limits: Limits, layers: list[str]) -> None:
    """Supervise a call, from within a PID namespace of its own where there is one."""
    pid_namespace = "pid namespace" in layers
    home = _private_place(limits) if "read-only files" in layers else None
    if home is not None and not kernel.private_directory(home, limits.file_bytes * _FILES):
        supervise.write_result(result_fd, {"setup_failed": "no private directory"})
        return
    if pid_namespace:
        if not kernel.unshare(kernel.NEWPID):
            supervise.write_result(result_fd, {"setup_failed": "no PID namespace"})
            return
        pid = os.fork()
        if pid:
            for fd in (code_fd, stdin_fd, result_fd):
                os.close(fd)
            os.waitpid(pid, 0)
            return
        kernel.die_with_parent(signal.SIGKILL)
    try:
        result = supervise.supervise(
            code_fd, stdin_fd, limits, home=home, pid_namespace=pid_namespace, drop="user ids" in layers
        )
    except OSError as error:
        result = {"setup_failed": str(error)}
    supervise.write_result(result_fd, result)


def _private_place(limits: Limits) -> str:
    """Where a call's own directory is mounted: /tmp, so that its name repeats, unless Python itself lives there."""
    needed = [os.__file__, sys.executable, sys.base_prefix, *limits.packages]
    hidden = any(str(Path(path).resolve()).startswith(f"{_TMP}/") for path in needed)
    return limits.work_dir if hidden or not Path(_TMP).is_dir() else _TMP


def _layers(limits: Limits) -> list[str]:
    """Enter what this host allows, once; the names of what is there."""
    if not limits.isolate:
        return []
    names = []
    root = os.geteuid() == 0
    if not root and kernel.enter_user_namespace():
        names.append("user namespace")
    if _in_child(lambda: kernel.unshare(kernel.NEWPID)):
        names.append("pid namespace")
    for name, flag in (("network namespace", kernel.NEWNET), ("ipc namespace", kernel.NEWIPC)):
        if kernel.unshare(flag):
            names.append(name)
    if _in_child(lambda: kernel.read_only_host() and kernel.private_directory(_private_place(limits), 1 << 20)):
        kernel.read_only_host()
        names.append("read-only files")
    if root and _in_child(lambda: _can_be(limits)):
        names.append("user ids")
    return names


def _can_be(limits: Limits) -> bool:
    """Whether the call's user could read the packages and use the directory."""
    os.setgroups([])
    os.setresgid(limits.uid, limits.uid, limits.uid)
    os.setresuid(limits.uid, limits.uid, limits.uid)
    places = [limits.work_dir, str(Path(os.__file__).parent), *limits.packages]
    return all(os.access(place, os.X_OK) for place in places)


def _in_child(check: Callable[[], bool]) -> bool:
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if check() else 1)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
