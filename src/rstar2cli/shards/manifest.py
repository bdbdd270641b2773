"""The files beside the parts: ``manifest.json`` (written last), the journal of a run under way, ``config.json``."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import msgspec

from rstar2cli.core.errors import DataError
from rstar2cli.shards.lineage import Lineage

MANIFEST = "manifest.json"
JOURNAL = ".parts.json"
"""Parts finished so far, while the output is being written; hidden, so that no glob matches it."""
CONFIG = "config.json"
REJECTS = "rejects.jsonl"
KIND = "shards/1"
T = TypeVar("T")


class Part(msgspec.Struct, kw_only=True):
    """One part file."""

    name: str
    """File name."""
    rows: int
    """Records in it."""
    digest: str
    """Digest of its data columns (see :mod:`rstar2cli.shards.digest`)."""
    open: bool = False
    """Short because the writer stopped early; a resumed writer goes on filling it."""


class Manifest(msgspec.Struct, kw_only=True):
    """What a complete shard directory holds."""

    kind: str = KIND
    """Kind and version of this file."""
    record: str
    """Kind and version of the records: `trajectory/1`."""
    rows: int
    """Records in all parts."""
    digest: str
    """Digest of the data columns of all rows in order."""
    rejects: int
    """Rows in `rejects.jsonl`."""
    parts: list[Part]
    """The parts in order."""
    lineage: Lineage
    """How it was made."""


class Journal(msgspec.Struct, kw_only=True):
    """Parts of an output that is not complete yet. Written before the part gets its name."""

    record: str
    """Kind and version of the records."""
    parts: list[Part]
    """Finished parts; one name may be there twice while it is being replaced."""


def read_manifest(directory: Path) -> Manifest | None:
    """The manifest, or null without one. Raises :class:`DataError` if it can't be understood."""
    return _read(directory / MANIFEST, Manifest)


def read_journal(directory: Path) -> Journal | None:
    """The journal of an unfinished output, or null without one."""
    return _read(directory / JOURNAL, Journal)


def read_config(directory: Path) -> dict[str, Any] | None:
    """The resolved configuration that an output was made with, or null without one."""
    return read_json(directory / CONFIG)


def read_json(path: Path) -> dict[str, Any] | None:
    """A JSON object in a file, or null without the file. Raises :class:`DataError` if it is something else."""
    return _read(path, dict)


def _read(path: Path, kind: type[T]) -> T | None:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.DecodeError as error:
        raise DataError(f"{path}: not readable: {error}", hint="the file was damaged; make the output again") from None


def encode(document: Any) -> bytes:
    """A document as indented JSON with a final newline."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
