"""Rows that were refused, kept with their place and reason."""

from __future__ import annotations

import msgspec

RAW_CHARS = 2000
"""Characters of a refused row that are kept."""


class Reject(msgspec.Struct, kw_only=True, frozen=True):
    """One refused row."""

    file: str
    """File it was in; `-` for standard input."""
    line: int
    """Its line (JSONL) or row (Parquet), from 1; 0 for what is in no file or in no line of it."""
    reason: str
    """What is wrong with it."""
    raw: str = ""
    """The row as it was, cut at :data:`RAW_CHARS` characters."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"


def reject_line(file: str, line: int, reason: str, raw: bytes = b"") -> Reject:
    """A reject of a JSONL line; bytes that are not UTF-8 are shown as U+FFFD."""
    text = raw[: RAW_CHARS * 4].decode(errors="replace")
    return Reject(file=file, line=line, reason=reason, raw=text[:RAW_CHARS])


def encode_reject(reject: Reject) -> bytes:
    """One line of ``rejects.jsonl``."""
    return msgspec.json.encode(reject) + b"\n"
