"""Parquet parts: read in batches, written with their lineage in the footer, checked after writing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from rstar2cli.core.errors import DataError, InputMissing
from rstar2cli.records.arrow import KIND_KEY, rows_of
from rstar2cli.records.base import Record

ROW_GROUP_ROWS = 16384
"""Most rows in a row group."""
READ_ROWS = 1024
"""Most rows decoded at once."""
READ_BYTES = 8 << 20
"""Rows decoded at once hold about this much in Arrow; as Python objects they take about ten times as much."""
LINEAGE_KEY, DIGEST_KEY = b"rstar2.lineage", b"rstar2.digest"


def open_parquet(path: Path) -> pq.ParquetFile:
    """An opened file. Raises :class:`DataError` for one that is damaged or cut off."""
    try:
        return pq.ParquetFile(path, page_checksum_verification=True)
    except FileNotFoundError as error:
        raise InputMissing(f"{path}: no such file") from error
    except PermissionError as error:
        raise InputMissing(f"{path}: can't read: {error.strerror}") from error
    except (pa.ArrowInvalid, OSError) as error:
        raise damaged(path, error) from error


def damaged(path: Path, error: Exception) -> DataError:
    """The error for a Parquet file that can't be read."""
    reason = str(error).splitlines()[0].strip() if str(error) else type(error).__name__
    return DataError(
        f"{path}: damaged or cut-off Parquet file: {reason}",
        hint="copy it again, or make it again with --overwrite (or --resume, if its directory has no manifest.json)",
    )


def footer(path: Path) -> dict[bytes, bytes]:
    """The key-value metadata of the footer."""
    with open_parquet(path) as file:
        return dict(file.metadata.metadata or {}) | dict(file.schema_arrow.metadata or {})


def footer_kind(path: Path) -> str | None:
    """``name/version`` of the records inside; null for foreign Parquet."""
    kind = footer(path).get(KIND_KEY)
    return kind.decode() if kind else None


def footer_schema(path: Path) -> pa.Schema:
    """The Arrow schema of the file, without metadata."""
    with open_parquet(path) as file:
        return file.schema_arrow.remove_metadata()


def row_count(path: Path) -> int:
    """Rows, from the footer."""
    with open_parquet(path) as file:
        return int(file.metadata.num_rows)


def batches(path: Path, columns: list[str] | None = None, *, rows: int = READ_ROWS) -> Iterator[pa.RecordBatch]:
    """The rows, at most ``rows`` and about :data:`READ_BYTES` at once. Raises :class:`DataError` for damaged pages."""
    with open_parquet(path) as file:
        meta = file.metadata
        size = sum(meta.row_group(number).total_byte_size for number in range(meta.num_row_groups))
        rows = max(1, min(rows, READ_BYTES * meta.num_rows // max(1, size)))
        try:
            yield from file.iter_batches(batch_size=rows, columns=columns, use_threads=False)
        except (pa.ArrowInvalid, OSError) as error:
            raise damaged(path, error) from error


def rows(batch: pa.RecordBatch, cls: type[Record], name: str) -> Iterator[dict[str, Any]]:
    """The rows of a batch in the form of JSONL. Raises :class:`DataError` for a JSON column that holds no JSON."""
    try:
        yield from rows_of(batch, cls)
    except msgspec.DecodeError as error:
        raise DataError(f"{name}: a JSON column holds something else: {error}") from None


def new_file(file: Any, schema: pa.Schema) -> pq.ParquetWriter:
    """A writer onto an open binary file: zstd, checksums, dictionary where it helps."""
    return pq.ParquetWriter(file, schema, compression="zstd", write_page_checksum=True)
