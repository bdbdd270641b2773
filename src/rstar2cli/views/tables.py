"""Rows as text: a table for people, or JSONL, JSON, CSV, Markdown.

One implementation for every command that prints rows.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args

from rstar2cli.core.errors import UsageError
from rstar2cli.views import escape

Format = Literal["table", "jsonl", "json", "csv", "md"]
FORMATS: tuple[str, ...] = get_args(Format)
NARROWEST = 8
"""Columns narrower than this are unreadable: rows are then printed one below the other."""
NULL = "–"

Row = Mapping[str, Any]


def render(rows: Sequence[Row], format: str, *, width: int | None = None) -> str:
    """The rows in one of :data:`FORMATS`, ending with a newline (empty text for no rows, ``[]`` as JSON).

    ``width`` is that of the terminal in columns: cells of a table are shortened to fit it,
    and CSV cells are escaped. ``None`` (a pipe or file): nothing is ever cut. Columns are the
    keys of all rows, in order of first appearance. Raises ``UsageError`` for an unknown format.
    """
    if format not in FORMATS:
        raise UsageError(f"unknown format {format!r}", hint=f"choose from {', '.join(FORMATS)}")
    if format == "json":
        return json_line(list(rows), indent=2)
    if format == "jsonl":
        return "".join(json_line(row) for row in rows)
    columns = list(dict.fromkeys(key for row in rows for key in row))
    if not columns:
        return ""
    if format == "csv":
        return _csv(rows, columns, escape.plain if width is not None else str)
    if format == "md":
        return _markdown(rows, columns)
    return _table(rows, columns, width)


def json_line(value: Any, *, indent: int | None = None) -> str:
    """Strict JSON text and a newline: no NaN (null instead), no raw control character."""
    text = json.dumps(_finite(value), ensure_ascii=False, allow_nan=False, default=str, indent=indent)
    return escape.json_text(text) + "\n"


def cell(value: Any) -> str:
    """A value as a person reads it: numbers to 6 digits, null as a dash, nested values as JSON."""
    if value is None:
        return NULL
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict | list | tuple):
        return json_line(value).rstrip("\n")
    return str(value)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def _csv(rows: Sequence[Row], columns: Sequence[str], safe: Callable[[str], str]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([safe(column) for column in columns])
    for row in rows:
        writer.writerow([_csv_cell(row.get(column), safe) for column in columns])
    return buffer.getvalue()


def _csv_cell(value: Any, safe: Callable[[str], str]) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value)  # full precision: a file is for machines
    return safe(cell(value))


def _markdown(rows: Sequence[Row], columns: Sequence[str]) -> str:
    lines = [[_markdown_cell(column) for column in columns], ["---:" if _numeric(rows, c) else "---" for c in columns]]
    lines += [[_markdown_cell(cell(row.get(column))) for column in columns] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _markdown_cell(text: str) -> str:
    safe = escape.html(text).replace("&quot;", '"').replace("&#x27;", "'")
    return safe.replace("\\", "\\\\").replace("|", "\\|").replace("\n", "<br>").replace("\t", " ")


def _numeric(rows: Sequence[Row], column: str) -> bool:
    values = [row.get(column) for row in rows]
    return all(value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in values)


def _table(rows: Sequence[Row], columns: Sequence[str], width: int | None) -> str:
    from rich.cells import cell_len, set_cell_size

    names = [escape.one_line(column) for column in columns]
    cells = [[escape.one_line(cell(row.get(column))) for column in columns] for row in rows]
    widths = [max(cell_len(text) for text in column) for column in zip(names, *cells, strict=True)]
    if width is not None:
        fitted = _fit(widths, width)
        if fitted is None:
            return _upright(names, cells, width)
        widths = fitted
    right = [_numeric(rows, column) for column in columns]

    def line(texts: Sequence[str]) -> str:
        parts = []
        for text, size, to_right in zip(texts, widths, right, strict=True):
            short = text if cell_len(text) <= size else set_cell_size(text, size - 1) + "…"
            pad = " " * (size - cell_len(short))
            parts.append(pad + short if to_right else short + pad)
        return "  ".join(parts).rstrip() + "\n"

    return line(names) + "  ".join("─" * size for size in widths) + "\n" + "".join(map(line, cells))


def _fit(widths: Sequence[int], total: int) -> list[int] | None:
    """Widths that fit a terminal: the widest columns give first; None if they can't stay readable."""
    room = total - 2 * (len(widths) - 1)
    if sum(widths) <= room:
        return list(widths)
    if sum(min(size, NARROWEST) for size in widths) > room:
        return None
    low, high = NARROWEST, max(widths)  # largest common cap under which all fit
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if sum(min(size, middle) for size in widths) <= room else (low, middle - 1)
    return [min(size, low) for size in widths]


def _upright(names: Sequence[str], cells: Sequence[Sequence[str]], width: int) -> str:
    from rich.cells import cell_len, set_cell_size

    label = max(map(cell_len, names))
    room = max(NARROWEST, width - label - 2)
    blocks = []
    for values in cells:
        lines = []
        for name, value in zip(names, values, strict=True):
            short = value if cell_len(value) <= room else set_cell_size(value, room - 1) + "…"
            lines.append(f"{name}{' ' * (label - cell_len(name))}  {short}\n")
        blocks.append("".join(lines))
    return "\n".join(blocks)
