"""Rows of JSONL and Parquet files, shard directories and standard input, ours or foreign."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from rstar2cli.core.errors import DataError
from rstar2cli.curation.sources.rows import Row
from rstar2cli.records import Problem
from rstar2cli.shards import parquet
from rstar2cli.shards.lines import MAX_LINE_BYTES, open_file, read_lines, stdin_stream
from rstar2cli.shards.rejects import Reject, reject_line
from rstar2cli.shards.resolve import Source, resolve

OnReject = Callable[[Reject], None]


def file_rows(name: str, on_reject: OnReject) -> Iterator[Row]:
    """The rows of one input name; lines that are no JSON object go to ``on_reject``.

    Raises ``InputMissing`` for what is missing or unfinished and ``DataError`` for damaged files.
    """
    for source in resolve([name]):
        yield from _parquet_rows(source) if source.parquet else _jsonl_rows(source, on_reject)


def _jsonl_rows(source: Source, on_reject: OnReject) -> Iterator[Row]:
    name = str(source.path)
    for line in read_lines(stdin_stream() if source.stdin else open_file(source.path), name):
        if line.too_long:
            size, limit = line.too_long >> 20, MAX_LINE_BYTES >> 20
            on_reject(reject_line(name, line.number, f"line of {size} MiB, more than {limit} MiB", line.data))
            continue
        try:
            values = msgspec.json.decode(line.data)
        except (msgspec.DecodeError, RecursionError) as error:
            on_reject(reject_line(name, line.number, f"not JSON: {error}", line.data))
            continue
        if not isinstance(values, dict):
            on_reject(reject_line(name, line.number, "expected object", line.data))
            continue
        yield Row(name, line.number, values)


def _parquet_rows(source: Source) -> Iterator[Row]:
    name = str(source.path)
    kind = parquet.footer_kind(source.path)
    number = 0
    for batch in parquet.batches(source.path):
        rows = iter(batch.to_pylist()) if kind is None else parquet.rows(batch, Problem, name)
        for values in rows:
            number += 1
            yield Row(name, number, values if kind is None else {"kind": kind, **values})
    if source.rows is not None and number != source.rows:
        raise DataError(
            f"{name}: {number} rows, but manifest.json promises {source.rows}", hint="make the output again"
        )
