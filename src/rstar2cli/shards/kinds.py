"""Which kind of record an input holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from rstar2cli.core.errors import DataError, InputMissing
from rstar2cli.records import KINDS, Record
from rstar2cli.records.codec import NewerVersion, RowError, check_kind
from rstar2cli.shards.lines import MAX_LINE_BYTES, lines_ahead, open_file, read_lines, stdin_stream
from rstar2cli.shards.rejects import Reject, reject_line
from rstar2cli.shards.resolve import Source, is_bookkeeping, resolve

_LINES = "records are JSONL (one JSON object per line) or Parquet"


def detect(inputs: Sequence[str]) -> type[Record]:
    """The record kind of the first row or Parquet file that says one.

    Raises :class:`DataError` if it is unknown or newer, :class:`InputMissing` if there are no records.
    """
    return detect_sources(resolve(inputs))


def detect_sources(sources: Sequence[Source]) -> type[Record]:
    """As :func:`detect`, for files.

    Files are looked at in order; an empty one, or one whose rows are no records, leaves the question to the next.
    """
    fault: DataError | None = None
    for source in sources:
        try:
            kind = parquet_kind(source) if source.parquet else _jsonl_kind(source)
        except DataError as error:
            fault = fault or _bookkeeping(source) or error
            continue
        if kind is not None:
            return record_class(kind, str(source.path))
    if fault is not None:
        raise fault
    raise InputMissing("no records in " + (", ".join(str(source.path) for source in sources) or "the input"))


def _bookkeeping(source: Source) -> DataError | None:
    if not is_bookkeeping(source.path.name):
        return None
    return DataError(
        f"{source.path}: what is kept beside records, and holds none",
        hint=f"give what it lies beside, in {source.path.parent}",
    )


def record_class(kind: str, where: str) -> type[Record]:
    """The class that reads ``name/version``. Raises :class:`DataError`."""
    cls = KINDS.get(kind.partition("/")[0])
    if cls is None:
        raise DataError(f"{where}: unknown kind of record {kind!r}", hint=f"known: {', '.join(KINDS)}")
    try:
        check_kind(kind, cls)
    except NewerVersion as error:
        raise DataError(f"{where}: {error}", hint="update rstar2") from None
    except RowError as error:
        raise DataError(f"{where}: {error}") from None
    return cls


def parquet_kind(source: Source) -> str | None:
    """The kind in a Parquet footer; null for Parquet that rstar2 did not write."""
    from rstar2cli.shards.parquet import footer_kind

    return footer_kind(source.path)


def strangers(source: Source) -> Iterator[Reject]:
    """A reject for each row of a file in which none says a known kind. Raises :class:`DataError` for the whole file."""
    name = str(source.path)
    if source.parquet:
        kind = parquet_kind(source)
        if kind is None:
            raise DataError(f"{name}: no kind in its footer: not records")
        record_class(kind, name)
        return
    for line in read_lines(stdin_stream() if source.stdin else open_file(source.path), name):
        place = f"{name}:{line.number}"
        try:
            record_class(_line_kind(line.data, place, line.too_long), place)
        except DataError as error:
            yield reject_line(name, line.number, error.message.removeprefix(f"{place}: "), line.data)


def _jsonl_kind(source: Source) -> str | None:
    """The kind that the first good row says; null for a file without rows. Raises the fault of its first row."""
    name = str(source.path)
    stream = stdin_stream() if source.stdin else open_file(source.path)
    fault: DataError | None = None
    for number, line in lines_ahead(stream, name):
        try:
            return _line_kind(line, f"{name}:{number}")
        except DataError as error:
            fault = fault or error
    if fault is not None:
        raise fault
    return None


def _line_kind(line: bytes, where: str, size: int = 0) -> str:
    """What a line says; ``size`` is that of one of which only the head is there."""
    if max(size, len(line)) > MAX_LINE_BYTES:
        raise DataError(f"{where}: line of more than {MAX_LINE_BYTES >> 20} MiB", hint=_LINES)
    try:
        row = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        raise DataError(f"{where}: not JSON", hint=_LINES) from None
    kind = row.get("kind") if isinstance(row, dict) else None
    if not isinstance(kind, str):
        raise DataError(
            f'{where}: no "kind" at the start of the row: not a record',
            hint="turn foreign data into problem records with: rstar2 curate",
        )
    return kind
