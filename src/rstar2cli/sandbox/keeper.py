"""The host's handle of one keeper process: start it, hand it calls, notice its death."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, Any

import rstar2cli
from rstar2cli.sandbox.inside.limits import Limits
from rstar2cli.sandbox.inside.watch import PATIENCE

_START_S = 60.0
_GRACE_S = 15.0
"""Time past the longest wait of the supervisor after which the supervisor itself counts as lost."""
_CHUNK = 65536
_BOOT = (
    "import sys; sys.path.insert(0, {root!r}); from rstar2cli.sandbox.inside.keeper import main; "
    "sys.path.pop(0); main()"
)
_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "PYTHONUTF8": "1",
    "MPLBACKEND": "Agg",
    **{f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB")},
}
"""All that a call finds in its environment, HOME and TMPDIR aside. Threads and hashes are fixed so results repeat."""


class KeeperFailed(Exception):
    """The keeper did not start, or died; the message says what it last wrote."""


class Keeper:
    """A running keeper. One call at a time; owned by one thread."""

    def __init__(self, limits: Limits) -> None:
        """Raises :class:`KeeperFailed` if it does not come up."""
        self._limits = limits
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the keeper
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control = ours
        root = str(Path(rstar2cli.__file__).resolve().parent.parent)
        command = [sys.executable, "-S", "-s", "-P", "-B", "-c", _BOOT.format(root=root)]
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [*command, str(theirs.fileno()), json.dumps(dataclasses.asdict(limits))],
                    env=_ENVIRONMENT,
                    cwd="/",
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=self._log,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
            except OSError as error:
                self._control.close()
                self._log.close()
                raise KeeperFailed(f"can't start {sys.executable}: {error.strerror}") from error
        self.layers: list[str] = self._ready()["layers"]
        """Isolation layers it found."""

    def run(self, code: str, stdin: str, seed: int) -> dict[str, Any]:
        """Run one call; the raw result. Raises :class:`KeeperFailed` if the keeper or the supervisor is lost."""
        header = json.dumps({"seed": seed}).encode() + b"\n"
        files = [
            _memory_file(header + code.encode("utf-8", "surrogatepass")),
            _memory_file(stdin.encode("utf-8", "replace")),
        ]
        reader, writer = os.pipe()
        try:
            try:
                socket.send_fds(self._control, [b"run"], [*files, writer])
            except OSError as error:
                raise self._failure(f"it is gone ({error.strerror})") from error
            finally:
                for fd in (*files, writer):
                    os.close(fd)
            deadline = time.monotonic() + PATIENCE * self._limits.wall_s + _GRACE_S
            line = _read_line(reader, deadline)
        finally:
            os.close(reader)
        if line is None or not self._receive(deadline):
            raise self._failure("no result")
        result: dict[str, Any] = json.loads(line)
        return result

    def close(self) -> None:
        """Kill it and whatever it runs. Safe to call twice and from another thread."""
        self._control.close()
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                # its group holds the supervisors too; their PID namespaces die with them
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._log.close()

    def _ready(self) -> dict[str, Any]:
        message = self._receive(time.monotonic() + _START_S)
        if not message:
            raise self._failure("it did not start")
        ready: dict[str, Any] = json.loads(message)
        return ready

    def _receive(self, deadline: float) -> bytes:
        """The next message; empty at its end or the deadline."""
        left = max(0.0, deadline - time.monotonic())
        try:
            if not select.select([self._control], [], [], left)[0]:
                return b""
            return self._control.recv(_CHUNK)
        except (OSError, ValueError):  # closed under our hands
            return b""

    def _failure(self, what: str) -> KeeperFailed:
        last = b""
        with contextlib.suppress(ValueError):  # closed by another thread meanwhile
            self._log.seek(0)
            last = self._log.read()[-1000:]
        self.close()
        return KeeperFailed(f"sandbox keeper: {what}. {last.decode('utf-8', 'replace').strip()}".strip())


def _memory_file(data: bytes) -> int:
    """An anonymous file with this content, positioned at its start."""
    fd = os.memfd_create("call")
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _read_line(fd: int, deadline: float) -> bytes | None:
    """Bytes up to a newline; null at an early end or the deadline."""
    data = bytearray()
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    while not data.endswith(b"\n"):
        left = deadline - time.monotonic()
        if left <= 0 or not poller.poll(left * 1000):
            return None
        chunk = os.read(fd, _CHUNK)
        if not chunk:
            return None
        data += chunk
    return bytes(data)
