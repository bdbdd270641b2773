"""Records from files, directories and streams: strict, row by row, nothing dropped in silence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Generic, TypeVar

from rstar2cli.core.errors import DataError, InputMissing
from rstar2cli.records.base import Record
from rstar2cli.records.codec import NewerVersion, RowError, check_kind, decode_line, record_from_row
from rstar2cli.shards.lines import MAX_LINE_BYTES, open_file, read_lines, stdin_stream
from rstar2cli.shards.rejects import Reject, reject_line
from rstar2cli.shards.resolve import Source, resolve

if TYPE_CHECKING:
    from rstar2cli.shards.where import Where

R = TypeVar("R", bound=Record)
OnReject = Callable[[Reject], None]
OnUnknown = Callable[[str, str], None]
"""Called with file and field the first time that an unknown field is moved to ``extra``."""
OnPlace = Callable[[Record, str, int], None]
"""Called with each good record, its file and its line (JSONL) or row (Parquet), from 1, before the record is given."""

_STREAM_BATCH, _FILE_BATCH = 32, 1024
"""Rows that ``where`` judges at once; few on a stream, so that records flow."""


def read_records(
    inputs: Sequence[str],
    cls: type[R],
    *,
    where: str | None = None,
    limit: int | None = None,
    strict: bool = False,
    on_reject: OnReject | None = None,
    on_unknown: OnUnknown | None = None,
    on_place: OnPlace | None = None,
    empty_ok: bool = False,
) -> Iterator[R]:
    """All records of kind ``cls`` behind the inputs, in order, at most ``limit`` that pass ``where``.

    ``inputs``: files (JSONL, plain, gzip or zstd; Parquet), globs, shard or run directories, ``-``.
    ``where``: SQL expression over the record's columns. ``strict``: unknown fields are errors.
    Bad rows go to ``on_reject``; without it the first one raises :class:`DataError`.
    Raises at once: :class:`InputMissing` for missing or unfinished inputs, :class:`UsageError` for a bad
    ``where``; at the end :class:`InputMissing` if there was no row at all, unless ``empty_ok``.
    """
    return read_sources(
        resolve(inputs),
        cls,
        where=where,
        limit=limit,
        strict=strict,
        on_reject=on_reject,
        on_unknown=on_unknown,
        on_place=on_place,
        empty_ok=empty_ok,
    )


def read_sources(
    sources: Sequence[Source],
    cls: type[R],
    *,
    where: str | None = None,
    limit: int | None = None,
    strict: bool = False,
    on_reject: OnReject | None = None,
    on_unknown: OnUnknown | None = None,
    on_place: OnPlace | None = None,
    empty_ok: bool = False,
) -> Iterator[R]:
    """As :func:`read_records`, for files already resolved."""
    keep = None
    if where:
        from rstar2cli.shards.where import Where

        keep = Where(where, cls)
    rows = _Rows(cls, strict, on_reject, on_unknown, on_place)
    if limit is not None and keep is None:
        rows.batch = max(1, min(limit, _FILE_BATCH))
    records = _all(rows, sources, keep, empty_ok)
    return records if limit is None else islice(records, limit)


def _all(rows: _Rows[R], sources: Sequence[Source], where: Where | None, empty_ok: bool) -> Iterator[R]:
    for source in sources:
        yield from rows.read(source, where)
    if not rows.seen and not empty_ok:
        names = ", ".join(str(source.path) for source in sources[:3]) + (" …" if len(sources) > 3 else "")
        raise InputMissing(f"no records in {names}", hint="the input is empty; check what should have written it")


class _Rows(Generic[R]):
    """Reads single files; remembers which unknown fields were told."""

    def __init__(
        self,
        cls: type[R],
        strict: bool,
        on_reject: OnReject | None,
        on_unknown: OnUnknown | None,
        on_place: OnPlace | None,
    ) -> None:
        self._cls = cls
        self._on_place = on_place
        self._strict = strict
        self._on_reject = on_reject
        self._on_unknown = on_unknown
        self._told: set[tuple[str, str]] = set()
        self.seen = 0
        """Rows met so far, the refused ones included."""
        self.batch = _FILE_BATCH
        """Rows of Parquet decoded at once."""

    def read(self, source: Source, where: Where | None) -> Iterator[R]:
        """The records of one file that pass ``where``."""
        if source.parquet:
            yield from self._parquet(source, where)
        elif where is None:
            yield from self._jsonl(source)
        else:
            records = self._jsonl(source)
            while batch := list(islice(records, _STREAM_BATCH if source.stdin else _FILE_BATCH)):
                yield from where.records(batch)

    def _jsonl(self, source: Source) -> Iterator[R]:
        name = str(source.path)
        for line in read_lines(stdin_stream() if source.stdin else open_file(source.path), name):
            self.seen += 1
            if line.too_long:
                size, limit = line.too_long >> 20, MAX_LINE_BYTES >> 20
                self._reject(reject_line(name, line.number, f"line of {size} MiB, more than {limit} MiB", line.data))
                continue
            try:
                record, unknown = decode_line(line.data, self._cls, strict=self._strict)
            except NewerVersion as error:
                raise DataError(f"{name}:{line.number}: {error}", hint="update rstar2") from None
            except RowError as error:
                self._reject(reject_line(name, line.number, str(error), line.data))
                continue
            self._tell(name, unknown)
            if self._on_place is not None:
                self._on_place(record, name, line.number)
            yield record

    def _parquet(self, source: Source, where: Where | None) -> Iterator[R]:
        import pyarrow as pa  # here: JSONL is read without it

        from rstar2cli.shards import parquet

        name = str(source.path)
        self._check_footer(source, parquet.footer_kind(source.path))
        number = 0
        for batch in parquet.batches(source.path, rows=self.batch):
            kept = range(batch.num_rows) if where is None else where.rows(batch, name)
            wanted = batch if len(kept) == batch.num_rows else batch.take(pa.array(kept, pa.int64()))
            self.seen += batch.num_rows
            for offset, row in zip(kept, parquet.rows(wanted, self._cls, name), strict=True):
                try:
                    record, unknown = record_from_row(row, self._cls, strict=self._strict)
                except RowError as error:
                    self._reject(reject_line(name, number + offset + 1, str(error), repr(row).encode()))
                    continue
                self._tell(name, unknown)
                if self._on_place is not None:
                    self._on_place(record, name, number + offset + 1)
                yield record
            number += batch.num_rows
        if source.rows is not None and number != source.rows:
            raise DataError(
                f"{name}: {number} rows, but manifest.json promises {source.rows}", hint="make the output again"
            )

    def _check_footer(self, source: Source, kind: str | None) -> None:
        if kind is None:
            return
        try:
            check_kind(kind, self._cls)
        except NewerVersion as error:
            raise DataError(f"{source.path}: {error}", hint="update rstar2") from None
        except RowError as error:
            raise DataError(
                f"{source.path}: {error}", hint=f"give {self._cls.record_name} records; look with: rstar2 head FILE"
            ) from None

    def _reject(self, reject: Reject) -> None:
        if self._on_reject is None:
            raise DataError(str(reject), hint=f"list all bad rows with: rstar2 validate {reject.file}")
        self._on_reject(reject)

    def _tell(self, name: str, unknown: list[str]) -> None:
        for field in unknown:
            if (name, field) not in self._told:
                self._told.add((name, field))
                if self._on_unknown is not None:
                    self._on_unknown(name, field)
