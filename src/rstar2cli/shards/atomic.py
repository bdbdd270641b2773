"""Files that appear whole or not at all, and what a failed write means."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from rstar2cli.core.errors import EnvironmentMissing, OutputConflict, RstarError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
TEMP_MARK = ".tmp-"


def disk_full(error: OSError) -> bool:
    """Whether a write failed for want of room (disk, quota, size of a file)."""
    return error.errno in _FULL


def output_error(name: str | Path, error: OSError) -> RstarError:
    """Our error for a failed write to ``name``."""
    reason = error.strerror or str(error)
    if disk_full(error):
        return EnvironmentMissing(
            f"{name}: can't write: {reason}",
            hint="make room and run the command again, or write elsewhere",
        )
    return OutputConflict(f"{name}: can't write: {reason}", hint="choose an output that you may write to")


@contextmanager
def telling(name: str | Path) -> Iterator[None]:
    """Refusals of the file system inside the block come as :func:`output_error` for ``name``."""
    try:
        yield
    except OSError as error:
        raise output_error(name, error) from error


def is_temp(name: str) -> bool:
    """Whether a file name is one of :func:`temp_path`: what a killed process was writing."""
    return name.startswith(".") and TEMP_MARK in name


def temp_path(path: Path) -> Path:
    """A hidden name beside ``path`` that no glob of data files matches."""
    return path.with_name(f".{path.name}{TEMP_MARK}{os.getpid()}")


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A binary file that takes the name ``path`` at the end, fsynced; nothing is left if the block fails.

    Raises :class:`EnvironmentMissing` for a full disk, :class:`OutputConflict` for other refusals.
    """
    temp = temp_path(path)
    try:
        with temp.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        publish(temp, path)
    except OSError as error:
        temp.unlink(missing_ok=True)
        raise output_error(path, error) from error
    except BaseException:
        temp.unlink(missing_ok=True)
        raise


def publish(temp: Path, path: Path) -> None:
    """Give a finished file its name, durably."""
    temp.replace(path)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make names in a directory durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def check_new(path: str | Path, *, overwrite: bool) -> None:
    """Raise :class:`OutputConflict` if a file may not be written here: to be asked before the work for it."""
    with telling(path):
        if Path(path).is_dir():
            raise OutputConflict(f"{path}: a directory, so no file replaces it", hint="choose another name")
        if Path(path).exists() and not overwrite:
            raise OutputConflict(f"{path}: exists", hint="replace it with --overwrite, or choose another name")


def write_bytes(path: Path, data: bytes) -> None:
    """Write a small file whole or not at all."""
    with replacing(path) as file:
        file.write(data)
