"""Shards as read-only DuckDB views, typed from their records.

Parquet is read in place. JSONL and standard input go through the strict reader into
a temporary Parquet file first: DuckDB's own JSON detection drops keys and rounds numbers.
Nothing else can be reached: one SELECT per call, no files beyond the views', no
extensions, no change of settings.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import duckdb

from rstar2cli.core import drain, process
from rstar2cli.core.errors import UsageError
from rstar2cli.records import Record
from rstar2cli.records.arrow import arrow_schema
from rstar2cli.records.fields import field_types
from rstar2cli.shards import parquet
from rstar2cli.shards.duck import SAFE, distinct, plain, quote, shut, translated
from rstar2cli.shards.kinds import detect_sources
from rstar2cli.shards.lineage import Lineage
from rstar2cli.shards.part import PartFile
from rstar2cli.shards.reader import OnReject, read_sources
from rstar2cli.shards.resolve import Source, resolve

MEMORY_SHARE = 0.5
"""Part of the process's memory limit that a query may use before it spills."""
SPILL_SHARE = 0.5
"""Part of the free disk that spilled data may take."""
_POLL_S = 0.05
_EXPLAIN = re.compile(r"^\s*EXPLAIN\s+(?:\([^)]*\)\s*|ANALYZE\s+)?", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z_]\w*")


def connect(
    views: Mapping[str, Sequence[str]], *, on_reject: OnReject | None = None, threads: int | None = None
) -> Database:
    """A database with one read-only view per name, over the inputs given (as :func:`read_records` takes them).

    Bad JSONL rows go to ``on_reject``; without it the first raises :class:`DataError`.
    Raises also :class:`InputMissing` and, for a name that is no identifier, :class:`UsageError`.
    """
    database = Database(threads or process.cores())
    try:
        for name, inputs in views.items():
            database.add(name, inputs, on_reject)
        database.seal()
    except BaseException:
        database.close()
        raise
    return database


class Database:
    """A DuckDB connection that can only read its views. Use it as a context manager, or close it."""

    def __init__(self, threads: int) -> None:
        """Set limits: memory from the process's limit, ``threads``, a spill directory and its cap."""
        self.kinds: dict[str, type[Record]] = {}
        """Record kind of each view."""
        self._spill = Path(tempfile.mkdtemp(prefix="rstar2-"))
        self._files: list[Path] = []
        self._copies = 0
        free = shutil.disk_usage(self._spill).free
        self._con = duckdb.connect(
            ":memory:",
            config={
                "threads": threads,
                "memory_limit": f"{int(process.memory_limit() * MEMORY_SHARE)}B",
                "temp_directory": str(self._spill / "spill"),
                "max_temp_directory_size": f"{int(free * SPILL_SHARE)}B",
                **SAFE,
            },
        )

    def add(self, name: str, inputs: Sequence[str], on_reject: OnReject | None = None) -> None:
        """Add a view before :meth:`seal`."""
        if not _NAME.fullmatch(name):
            raise UsageError(f"{name!r}: no name for a view", hint="letters, digits and _, not beginning with a digit")
        sources = resolve(inputs)
        cls = detect_sources(sources)
        files = [self._as_parquet(source, cls, on_reject) for source in sources]
        self.kinds[name] = cls
        self._files += files
        self._con.execute(f'CREATE VIEW "{name}" AS {_select(cls, files)}')

    def seal(self) -> None:
        """Shut out all that is not a view's file, for good."""
        shut(self._con, [str(path) for path in self._files])

    def execute(self, query: str, parameters: Sequence[Any] | None = None) -> Database:
        """Run one SELECT (or EXPLAIN, DESCRIBE, SUMMARIZE, VALUES); rows come by the fetch methods.

        Ctrl-C and a requested stop interrupt it. Raises :class:`UsageError` for SQL that is wrong or
        not a query, :class:`DataError` for values it can't work with, :class:`EnvironmentMissing`
        if memory or spill space end, :class:`Stopped` after a requested stop.
        """
        self._check(query)
        failure: list[BaseException] = []
        done = threading.Event()

        def work() -> None:
            try:
                self._con.execute(query, parameters)
            except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
                failure.append(error)
            finally:
                done.set()

        # In a thread of its own, so that this one can hear a signal and interrupt the query. Waiting
        # for an event: a join that a signal interrupts takes the thread for ended (Python 3.11).
        threading.Thread(target=work, daemon=True).start()
        try:
            while not done.wait(_POLL_S):
                if drain.requested():
                    self._con.interrupt()
        except BaseException:
            self._con.interrupt()
            done.wait()
            raise
        if failure:
            drain.check("query interrupted")
            raise translated(failure[0], self._described())
        return self

    @property
    def columns(self) -> list[str]:
        """Names of the columns of the last query."""
        return [column[0] for column in self._con.description or []]

    @property
    def description(self) -> list[Any]:
        """As in the Python database API: (name, type, …) of each column of the last query."""
        return list(self._con.description or [])

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows of the last query."""
        return self._con.fetchall()

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row of the last query."""
        row: tuple[Any, ...] | None = self._con.fetchone()
        return row

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        """The next rows of the last query."""
        return self._con.fetchmany(size)

    def rows(self) -> list[dict[str, Any]]:
        """All rows of the last query, by column name (a repeated name gets a number); JSON columns as objects."""
        return self._named(self.fetchall())

    def row_batches(self, size: int = 1000) -> Iterator[list[dict[str, Any]]]:
        """As :meth:`rows`, ``size`` rows at once: a large result is never held whole."""
        while batch := self.fetchmany(size):
            yield self._named(batch)

    def _named(self, rows: Sequence[tuple[Any, ...]]) -> list[dict[str, Any]]:
        names = distinct(self.columns)
        json_columns = [str(column[1]) == "JSON" for column in self.description]
        return [
            {name: plain(value, is_json) for name, value, is_json in zip(names, row, json_columns, strict=True)}
            for row in rows
        ]

    def close(self) -> None:
        """Close and remove temporary files."""
        self._con.close()
        shutil.rmtree(self._spill, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _described(self) -> str:
        """Views and their columns, for people."""
        return "; ".join(f"{name} has {', '.join(field_types(cls))}" for name, cls in self.kinds.items())

    def _check(self, query: str) -> None:
        # EXPLAIN ANALYZE runs what it explains, so what counts is the statement behind it.
        body = _EXPLAIN.sub("", query)
        try:
            statements = self._con.extract_statements(body)
        except duckdb.Error as error:
            raise translated(error, self._described()) from None
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise UsageError("only one query is run, and it can only read", hint="SELECT, DESCRIBE, SUMMARIZE, EXPLAIN")

    def _as_parquet(self, source: Source, cls: type[Record], on_reject: OnReject | None) -> Path:
        if source.parquet and parquet.footer_schema(source.path).equals(arrow_schema(cls)):
            return self._plainly_named(source.path.absolute())
        return self._copied(source, cls, on_reject)

    def _plainly_named(self, path: Path) -> Path:
        """The file under a name that DuckDB does not take for a pattern."""
        if not re.search(r"[*?\[]", str(path)):
            return path
        self._copies += 1
        link = self._spill / f"link-{self._copies:05d}.parquet"
        link.symlink_to(path)
        return link

    def _copied(self, source: Source, cls: type[Record], on_reject: OnReject | None) -> Path:
        """The rows of any input as a temporary Parquet file with the record's own types."""
        lineage = Lineage(command=[], config={}, inputs={})
        self._copies += 1
        part = PartFile(self._spill / f"rows-{self._copies:05d}.parquet", cls, lineage, 0)
        try:
            for record in read_sources([source], cls, on_reject=on_reject, empty_ok=True):
                part.write(record)
            part.finish()
            part.publish()
        except BaseException:
            part.discard()
            raise
        return part.path


def _select(cls: type[Record], files: Sequence[Path]) -> str:
    """JSON text as JSON, everything else as the record's types are in Parquet."""
    columns = ", ".join(
        f'"{name}"::JSON AS "{name}"' if field.kind == "json" else f'"{name}"'
        for name, field in field_types(cls).items()
    )
    names = ", ".join(quote(str(path)) for path in files)
    return f"SELECT {columns} FROM read_parquet([{names}])"
