"""The digest by which two outputs are the same: of their data, not of files, parts, lineage or seconds."""

from __future__ import annotations

import functools
import hashlib
from array import array
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from rstar2cli.records.base import Record
from rstar2cli.records.fields import FieldType, field_types

_MODULUS = 1 << 256
_encode = msgspec.json.Encoder(order="deterministic").encode


class RowDigest:
    """Sum modulo 2²⁵⁶ of blake2b over (number of the row, row).

    Order counts (the number is hashed), and the digest of the whole is the sum of
    its parts' digests: a resumed writer needs only the sums. It guards against
    accidents, not against someone who builds a collision on purpose.
    """

    def __init__(self, start: int = 0) -> None:
        self.rows = start
        """Number of the next row."""
        self._sum = 0

    def add(self, record: Record) -> int:
        """Count a record; returns its size in bytes as JSON."""
        data = canonical(record)
        hashed = hashlib.blake2b(self.rows.to_bytes(8, "big") + data, digest_size=32).digest()
        self._sum = (self._sum + int.from_bytes(hashed, "big")) % _MODULUS
        self.rows += 1
        return len(data)

    def hexdigest(self) -> str:
        """64 hexadecimal digits."""
        return f"{self._sum:064x}"


def combine(digests: Sequence[str]) -> str:
    """The digest of a whole from its parts' digests, each begun at the number of its first row."""
    return f"{sum(int(digest, 16) for digest in digests) % _MODULUS:064x}"


def data_digest(paths: Sequence[str]) -> str:
    """Digest of all records behind the inputs, read again from their files."""
    from rstar2cli.shards.kinds import detect
    from rstar2cli.shards.reader import read_records

    digest = RowDigest()
    for record in read_records(paths, detect(paths), empty_ok=True):
        digest.add(record)
    return digest.hexdigest()


def canonical(record: Record) -> bytes:
    """The record as JSON: keys of objects sorted, 32-bit numbers rounded, volatile fields left out."""
    row = msgspec.to_builtins(record)
    for round_off in _rounders(type(record)):
        round_off(row)
    for path in record.volatile:
        _drop(row, path.split("."))
    return _encode(row)


def _drop(value: Any, path: list[str]) -> None:
    if isinstance(value, list):
        for item in value:
            _drop(item, path)
    elif isinstance(value, dict) and len(path) == 1:
        value.pop(path[0], None)
    elif isinstance(value, dict):
        _drop(value.get(path[0]), path[1:])


@functools.cache
def _rounders(cls: type[Record]) -> list[Callable[[dict[str, Any]], None]]:
    """What rounds each float32 field as its Parquet column does (float32 lies in top-level fields only)."""
    return [_rounder(name, field) for name, field in field_types(cls).items() if _is_float32(field)]


def _is_float32(field: FieldType) -> bool:
    return field.kind == "float32" or (field.item is not None and _is_float32(field.item))


def _rounder(name: str, field: FieldType) -> Callable[[dict[str, Any]], None]:
    if field.kind == "list":

        def round_list(row: dict[str, Any]) -> None:
            values = row[name]
            rounded = array("f", [0.0 if value is None else value for value in values])
            row[name] = [None if value is None else single for value, single in zip(values, rounded, strict=True)]

        return round_list

    def round_one(row: dict[str, Any]) -> None:
        if row[name] is not None:
            row[name] = array("f", [row[name]])[0]

    return round_one
