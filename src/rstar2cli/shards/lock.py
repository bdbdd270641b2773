"""One writer per output: a lock that dies with its process."""

from __future__ import annotations

import fcntl
import os
import re
import socket
from pathlib import Path

from rstar2cli.core.errors import OutputConflict
from rstar2cli.shards.atomic import is_temp, output_error

LOCK = ".lock"
"""Name of the lock file in a directory; without a writer it means nothing."""


def is_leftover(name: str) -> bool:
    """Whether a file in a directory is nobody's content: what a killed writer leaves before it has begun."""
    return name == LOCK or is_temp(name)


class OutputLock:
    """Holds ``path`` (a lock file) by flock until :meth:`release`.

    The kernel drops the lock of a dead process, so a file left behind blocks nobody. The
    file names its holder, for messages.
    """

    def __init__(self, path: Path, output: str) -> None:
        """Take the lock. Raises :class:`OutputConflict` if another writer holds it."""
        self._path = path
        self._fd = -1
        while self._fd < 0:
            self._fd = self._open(output)

    def _open(self, output: str) -> int:
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise output_error(output, error) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(fd, 256).decode(errors="replace").strip()
            if _died(holder):  # a child that it forked outlives it and holds the lock: take a new file
                if self._same_file(fd):
                    self._path.unlink(missing_ok=True)
                os.close(fd)
                return -1
            os.close(fd)
            raise OutputConflict(
                f"{output}: being written by another process" + (f" ({holder})" if holder else ""),
                hint="wait until it has finished, or write elsewhere",
            ) from None
        except OSError as error:  # a file system without locks
            os.close(fd)
            raise output_error(output, error) from error
        if not self._same_file(fd):  # its holder removed the file between our open and our lock
            os.close(fd)
            return -1
        try:
            os.truncate(fd, 0)
            os.write(fd, f"process {os.getpid()} on {socket.gethostname()}".encode())
        except OSError as error:
            os.close(fd)
            raise output_error(output, error) from error
        return fd

    def _same_file(self, fd: int) -> bool:
        try:
            return os.fstat(fd).st_ino == self._path.stat().st_ino
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Give it back; a second call does nothing."""
        if self._fd >= 0:
            self._path.unlink(missing_ok=True)
            os.close(self._fd)
            self._fd = -1


def _died(holder: str) -> bool:
    """Whether the process that a lock file names ran on this machine and is no more."""
    match = re.fullmatch(r"process (\d+) on (.+)", holder)
    if match is None or match[2] != socket.gethostname():
        return False
    try:
        os.kill(int(match[1]), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
