"""What a refusal of the file system means while something is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rstar2cli.core.errors import InputMissing


@contextmanager
def reading(name: str | Path) -> Iterator[None]:
    """``OSError`` inside the block comes as ``InputMissing``, with the file it is about, else ``name``."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputMissing(
            f"{error.filename or name}: can't read: {reason}", hint="check the path and its permissions"
        ) from error
