"""Records counted, in groups of a field, a JSON key or a key of ``extra``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rstar2cli.core.errors import UsageError
from rstar2cli.records import Record
from rstar2cli.records.fields import field_types
from rstar2cli.shards.views import Database
from rstar2cli.shards.where import Where


def count_by(database: Database, view: str, by: Sequence[str], where: str | None = None) -> list[dict[str, Any]]:
    """Rows ``{by…, count}``, the largest group first (one row ``{count}`` without ``by``).

    ``by``: a column, ``column.key`` of a JSON column, or the name of a key of ``extra``.
    Raises :class:`UsageError` for a name that is none of these in any row.
    """
    cls = database.kinds[view]
    expressions = [group_expression(name, cls) for name in by]
    chosen = "".join(f'{expression} AS "{name}", ' for name, expression in zip(by, expressions, strict=True))
    places = ", ".join(map(str, range(1, len(by) + 1)))
    groups = f"GROUP BY {places} ORDER BY count DESC, {places}" if by else ""
    rows = database.execute(
        f'SELECT {chosen}count(*) AS count FROM "{view}" {filter_clause(where, cls)} {groups}'
    ).rows()
    for name in by:
        if name not in field_types(cls) and rows and all(row[name] is None for row in rows):
            raise UsageError(
                f"--by {name}: neither a field of a {cls.record_name} nor a key of its extra in any row",
                hint=f"fields: {', '.join(field_types(cls))}",
            )
    return rows


def filter_clause(where: str | None, cls: type[Record]) -> str:
    """The SQL clause for a ``--where`` expression. Raises :class:`UsageError` if it makes no sense for the record."""
    if not where:
        return ""
    Where(where, cls)  # the same check and message as for the input of a stage
    return f"WHERE (\n{where}\n)"


def group_expression(name: str, cls: type[Record]) -> str:
    """SQL for a column, ``column.key`` of a JSON column, or a key of ``extra``."""
    types = field_types(cls)
    column, dot, key = name.partition(".")
    if name in types:
        return f'"{name}"::VARCHAR' if types[name].kind in ("json", "list", "struct") else f'"{name}"'
    if '"' in name or "'" in name or "\\" in name:
        raise UsageError(f"--by {name}: no quotes or backslashes")
    if dot and column in types and types[column].kind == "json":
        return f"\"{column}\"->>'$.{_path(key)}'"
    return f"\"extra\"->>'$.{_path(name)}'"


def _path(key: str) -> str:
    return ".".join(f'"{part}"' for part in key.split("."))
