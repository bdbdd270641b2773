"""What every use of DuckDB here shares: safe settings, its errors in our words, its values as plain ones."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import duckdb
import msgspec

from rstar2cli.core.errors import DataError, EnvironmentMissing, UsageError

SAFE: dict[str, str | bool | int | float | list[str]] = {
    "autoload_known_extensions": False,
    "autoinstall_known_extensions": False,
    "python_enable_replacements": False,
}
"""Settings of every connection: no extensions by themselves, no Python variables as tables."""


def shut(con: duckdb.DuckDBPyConnection, paths: Sequence[str] = ()) -> None:
    """Take away all access to files but ``paths``, and any change of settings, for good."""
    con.execute(f"SET allowed_paths = [{', '.join(map(quote, paths))}]")
    con.execute("SET enable_external_access = false")
    con.execute("SET lock_configuration = true")


def quote(text: str) -> str:
    """Text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def plain(value: Any, is_json: bool) -> Any:
    """JSON as what it stands for, decimals (``0.5 * count(*)``) as numbers."""
    if is_json and isinstance(value, str):
        return msgspec.json.decode(value)
    return float(value) if isinstance(value, Decimal) else value


def distinct(names: Sequence[str]) -> list[str]:
    """Column names with a number at each repetition."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return found


def translated(error: BaseException, views: str = "") -> BaseException:
    """Our error for one of DuckDB's; anything else stays what it is. ``views``: what there is to ask for."""
    if not isinstance(error, duckdb.Error):
        return error
    text = str(error).split("\n\nLINE")[0].strip()
    if isinstance(error, duckdb.OutOfMemoryException):
        return EnvironmentMissing(f"query: {text}", hint="select fewer columns or rows, or give it more memory")
    if isinstance(error, duckdb.PermissionException):
        return UsageError(f"query: {text}", hint="only the views can be read; name data as NAME=DIR")
    if isinstance(error, duckdb.ConversionException | duckdb.OutOfRangeException | duckdb.InvalidInputException):
        return DataError(f"query: {text}")
    if isinstance(error, duckdb.IOException):
        return DataError(f"query: {text}", hint="rstar2 validate names the file that is damaged")
    table = isinstance(error, duckdb.CatalogException) and "Table with name" in text
    if table or (isinstance(error, duckdb.BinderException) and "Referenced column" in text):
        return UsageError(f"query: {text.splitlines()[0]}", hint=views or None)  # its guesses are of the whole database
    return UsageError(f"query: {text}")
