"""One part file of a shard: filled under a hidden name, checked, then named."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
import pyarrow as pa

from rstar2cli.core.errors import EnvironmentMissing
from rstar2cli.records.arrow import arrow_schema, to_table
from rstar2cli.records.base import Record
from rstar2cli.shards.atomic import output_error, publish, temp_path
from rstar2cli.shards.digest import RowDigest
from rstar2cli.shards.lineage import Lineage
from rstar2cli.shards.parquet import DIGEST_KEY, LINEAGE_KEY, ROW_GROUP_ROWS, new_file, open_parquet

R = TypeVar("R", bound=Record)

ROW_GROUP_BYTES = 64 << 20
"""A row group ends at this size of its rows as JSON, so that a few long trajectories do not fill the memory."""


class PartFile(Generic[R]):
    """A Parquet file being written. Errors of the disk come as those of :func:`output_error`."""

    def __init__(self, path: Path, cls: type[R], lineage: Lineage, first_row: int) -> None:
        self._path = path
        self._temp = temp_path(path)
        self._cls = cls
        self._digest = RowDigest(first_row)
        self._first_row = first_row
        self._pending: list[R] = []
        self._pending_bytes = 0
        metadata = {**(arrow_schema(cls).metadata or {}), LINEAGE_KEY: msgspec.json.encode(lineage)}
        self._schema = arrow_schema(cls).with_metadata(metadata)
        try:
            self._file = self._temp.open("wb")
            self._parquet = new_file(self._file, self._schema)
        except OSError as error:
            raise output_error(path, error) from error

    @property
    def path(self) -> Path:
        """Its final name."""
        return self._path

    @property
    def rows(self) -> int:
        """Records taken so far."""
        return self._digest.rows - self._first_row

    def write(self, record: R) -> None:
        """Add a record."""
        self._pending_bytes += self._digest.add(record)
        self._pending.append(record)
        if len(self._pending) >= ROW_GROUP_ROWS or self._pending_bytes >= ROW_GROUP_BYTES:
            self._flush()

    def finish(self) -> str:
        """Close, reopen and check, fsync; returns the digest. The file still has its hidden name."""
        self._flush()
        digest = self._digest.hexdigest()
        try:
            self._parquet.add_key_value_metadata({DIGEST_KEY.decode(): digest})
            self._parquet.close()
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
        except OSError as error:
            raise output_error(self._path, error) from error
        with open_parquet(self._temp) as written:
            if written.metadata.num_rows != self.rows:
                raise EnvironmentMissing(
                    f"{self._path}: wrote {self.rows} rows, found {written.metadata.num_rows} on reading back",
                    hint="the file system lost data; write elsewhere",
                )
        return digest

    def publish(self) -> None:
        """Give the finished file its name."""
        try:
            publish(self._temp, self._path)
        except OSError as error:
            raise output_error(self._path, error) from error

    def discard(self) -> None:
        """Remove what was written."""
        try:
            self._parquet.close()
            self._file.close()
        except (OSError, pa.ArrowException):
            pass  # the file goes anyway; the error that led here is the one to report
        self._temp.unlink(missing_ok=True)

    def _flush(self) -> None:
        if not self._pending:
            return
        try:
            self._parquet.write_table(to_table(self._pending, self._cls).replace_schema_metadata(self._schema.metadata))
        except OSError as error:
            raise output_error(self._path, error) from error
        self._pending, self._pending_bytes = [], 0
