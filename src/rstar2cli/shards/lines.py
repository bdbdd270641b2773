"""Lines of plain, gzip and zstd files and of standard input, with a bound on the length of a line.

Records end at ``\\n`` only: U+2028 and friends are text. Compression is known by its magic bytes.
"""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

from rstar2cli.core.errors import DataError, InputMissing

MAX_LINE_BYTES = 16 << 20
"""Longest line that is read; longer ones are rejected without being held in memory."""
LOOK_BYTES = 2 * MAX_LINE_BYTES
"""How far :func:`lines_ahead` looks: past one line that is too long."""
_BLOCK = 1 << 20
_HEAD = 4096
_GZIP, _ZSTD, PARQUET_MAGIC = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1"


class _Readable(Protocol):
    def read1(self, size: int, /) -> bytes: ...


@dataclass(frozen=True)
class Line:
    """One line."""

    number: int
    """From 1."""
    data: bytes
    """Without its newline; its first bytes only if it is too long."""
    too_long: int = 0
    """Length in bytes of a line beyond :data:`MAX_LINE_BYTES`, else 0."""


class PeekStream:
    """A stream whose first bytes can be looked at before they are read."""

    def __init__(self, raw: _Readable) -> None:
        self._raw = raw
        self._ahead = b""

    def peek(self, size: int) -> bytes:
        """The next ``size`` bytes, fewer only at the end of the stream."""
        while len(self._ahead) < size:
            block = self._raw.read1(_BLOCK)
            if not block:
                break
            self._ahead += block
        return self._ahead[:size]

    def read1(self, size: int = -1, /) -> bytes:
        """What is at hand, at most ``size`` bytes; empty only at the end."""
        if self._ahead:
            cut = len(self._ahead) if size < 0 else size
            block, self._ahead = self._ahead[:cut], self._ahead[cut:]
            return block
        return self._raw.read1(_BLOCK if size < 0 else size)


_stdin: tuple[Any, PeekStream] | None = None


def stdin_stream() -> PeekStream:
    """Standard input, decompressed; the same stream each time, so that a look ahead loses nothing."""
    global _stdin
    buffer = sys.stdin.buffer
    if _stdin is None or _stdin[0] is not buffer:
        raw = getattr(buffer, "raw", None)
        source = _Unbuffered(raw) if isinstance(raw, io.FileIO) else buffer
        _stdin = (buffer, open_stream(cast(BinaryIO, source), "-"))
    return _stdin[1]


class _Unbuffered:
    """Standard input without Python's buffer, whose lock a reading thread would hold when the process ends."""

    def __init__(self, raw: io.FileIO) -> None:
        self._raw = raw

    def read1(self, size: int, /) -> bytes:
        return self._raw.read(size) or b""


def open_file(path: Path) -> PeekStream:
    """A file, decompressed. Raises :class:`InputMissing` if it can't be opened."""
    try:
        return open_stream(path.open("rb"), str(path))
    except OSError as error:
        raise InputMissing(f"{path}: can't read: {error.strerror}") from error


def open_stream(raw: BinaryIO, name: str) -> PeekStream:
    """``raw`` behind the decompressor that its first bytes ask for. Parquet is refused."""
    stream = PeekStream(cast(_Readable, raw))
    magic = stream.peek(4)
    if magic.startswith(_GZIP):
        return PeekStream(gzip.GzipFile(fileobj=cast(BinaryIO, _AsFile(stream))))
    if magic == _ZSTD:
        return PeekStream(_ZstdReader(stream))
    if magic == PARQUET_MAGIC:
        raise DataError(f"{name}: Parquet can't be read from a stream", hint="give the file's name, or pipe JSONL")
    return stream


def read_lines(stream: PeekStream, name: str) -> Iterator[Line]:
    """The lines of a stream, empty ones left out (their numbers count).

    Holds at most :data:`MAX_LINE_BYTES` of a line. Raises :class:`DataError` for a
    damaged or truncated compressed file.
    """
    number, held, dropped = 1, bytearray(), 0
    while block := _next_block(stream, name, number):
        start = 0
        while (end := block.find(b"\n", start)) >= 0:
            held, dropped = _extend(held, dropped, block[start:end])
            if held or dropped:
                yield Line(number, bytes(held), dropped)
            number, start, held, dropped = number + 1, end + 1, bytearray(), 0
        held, dropped = _extend(held, dropped, block[start:])
    if held or dropped:
        yield Line(number, bytes(held), dropped)


def lines_ahead(stream: PeekStream, name: str) -> Iterator[tuple[int, bytes]]:
    """Number and text of the lines to come (empty ones left out) without reading past them.

    Looks :data:`LOOK_BYTES` ahead; a line that reaches beyond is the last, cut off there.
    Raises :class:`DataError` for a damaged or truncated compressed file.
    """
    number, start, size = 1, 0, _HEAD
    while True:
        with damage_told(name, number):
            seen = stream.peek(size)
        while (end := seen.find(b"\n", start)) >= 0:
            if end > start:
                yield number, seen[start:end]
            number, start = number + 1, end + 1
        if len(seen) < size or size >= LOOK_BYTES:
            if start < len(seen):
                yield number, seen[start:]
            return
        size = min(4 * size, LOOK_BYTES)


def _extend(held: bytearray, dropped: int, more: bytes) -> tuple[bytearray, int]:
    """Add to the line held; past the limit keep its head and count the rest."""
    if dropped:
        return held, dropped + len(more)
    if len(held) + len(more) > MAX_LINE_BYTES:
        head = bytearray(held[:_HEAD] or more[:_HEAD])
        return head, len(held) + len(more)
    held += more
    return held, 0


def _next_block(stream: PeekStream, name: str, number: int) -> bytes:
    with damage_told(name, number):
        return stream.read1(_BLOCK)


@contextmanager
def damage_told(name: str, number: int) -> Iterator[None]:
    """Reading inside the block raises :class:`DataError` with this place for a damaged or truncated file."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error, OSError) as error:
        raise DataError(
            f"{name}:{number}: the file is damaged or cut off: {error}", hint="copy or make it again"
        ) from error


class _AsFile:
    """Just enough of a file for :class:`gzip.GzipFile`."""

    def __init__(self, stream: PeekStream) -> None:
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        return self._stream.read1(size)


class _ZstdReader:
    """Decompresses zstd frames, one after another."""

    def __init__(self, stream: PeekStream) -> None:
        import zstandard  # here: only zstd files pay for its import

        self._stream = stream
        self._new = zstandard.ZstdDecompressor().decompressobj
        self._error = zstandard.ZstdError
        self._frame = self._new()
        self._open = False

    def read1(self, size: int, /) -> bytes:
        """The next decompressed bytes (any number). Raises ``EOFError`` if the file ends within a frame."""
        while True:
            block = self._stream.read1(size)
            if not block:
                if self._open:
                    raise EOFError("the zstd stream ends in the middle of a frame")
                return b""
            out = b""
            while block:
                self._open = True
                try:
                    out += self._frame.decompress(block)
                except self._error as error:
                    raise OSError(str(error)) from error
                block = b""
                if self._frame.eof:
                    block, self._frame, self._open = self._frame.unused_data, self._new(), False
            if out:
                return out
