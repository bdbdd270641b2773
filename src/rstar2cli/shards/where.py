"""``--where``: an SQL expression over a record's columns, judged by DuckDB on typed batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import duckdb
import pyarrow as pa

from rstar2cli.core.errors import DataError, UsageError
from rstar2cli.records.arrow import arrow_schema, to_table
from rstar2cli.records.base import Record
from rstar2cli.records.fields import field_types
from rstar2cli.shards.duck import SAFE, shut

R = TypeVar("R", bound=Record)
_ROW = "__row__"


class Where:
    """One expression for one kind of record. Raises :class:`UsageError` if it makes no sense for its columns."""

    def __init__(self, expression: str, cls: type[Record]) -> None:
        self._expression = expression
        self._cls = cls
        self._con = duckdb.connect(":memory:", config={"threads": 1, **SAFE})
        shut(self._con)
        columns = ", ".join(
            f'"{name}"::JSON AS "{name}"' if field.kind == "json" else f'"{name}"'
            for name, field in field_types(cls).items()
        )
        # The newline ends a comment at the end of the expression.
        self._query = f"SELECT {_ROW} FROM (SELECT {_ROW}, {columns} FROM batch) WHERE (\n{expression}\n)"
        self._statements_checked()
        self._run(arrow_schema(cls).empty_table(), "")

    def rows(self, batch: pa.RecordBatch | pa.Table, name: str) -> list[int]:
        """Numbers (from 0) of the rows of a batch that pass. Foreign columns may be missing or of other types."""
        table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
        schema = arrow_schema(self._cls)
        if table.schema.names != schema.names or not table.schema.equals(schema):
            table = _fit(table, schema, name)
        return self._run(table, name)

    def records(self, batch: Sequence[R]) -> list[R]:
        """The records that pass."""
        return [batch[row] for row in self._run(to_table(batch, self._cls), "")]

    def _statements_checked(self) -> None:
        # Without the parentheses too, so that none in the expression can close ours.
        for query in (f"SELECT {self._expression}", self._query):
            try:
                statements = self._con.extract_statements(query)
            except duckdb.Error as error:
                raise self._bad(error) from None
            if len(statements) != 1:
                raise UsageError(f"--where {self._expression!r}: not one expression")

    def _run(self, table: pa.Table, name: str) -> list[int]:
        numbered = table.append_column(_ROW, pa.array(range(table.num_rows), pa.int64()))
        self._con.register("batch", numbered)
        try:
            return sorted(row for (row,) in self._con.execute(self._query).fetchall())
        except duckdb.Error as error:
            raise self._bad(error) from None
        finally:
            self._con.unregister("batch")

    def _bad(self, error: duckdb.Error) -> UsageError:
        reason = str(error).split("\n")[0].replace(_ROW, "row")
        fields = ", ".join(field_types(self._cls))
        return UsageError(
            f"--where {self._expression!r}: {reason}",
            hint=f"an SQL expression over the columns of a {self._cls.record_name}: {fields}",
        )


def _fit(table: pa.Table, schema: pa.Schema, name: str) -> pa.Table:
    """The table with exactly the columns of the schema; absent ones are null."""
    columns = []
    for field in schema:
        if field.name not in table.schema.names:
            columns.append(pa.nulls(table.num_rows, field.type))
            continue
        try:
            columns.append(table.column(field.name).cast(field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise DataError(f"{name}: column {field.name} does not fit --where: {error}") from None
    return pa.Table.from_arrays(columns, names=schema.names)
