"""Results on stdout: a table on a terminal, JSONL when piped, or the format asked for."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any


def chosen(format: str) -> str:
    """The format that `auto` stands for here."""
    if format != "auto":
        return format
    return "table" if sys.stdout.isatty() else "jsonl"


def width() -> int | None:
    """Columns of the terminal; null for a pipe or file, where nothing is cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def emit(rows: Sequence[Mapping[str, Any]], format: str) -> None:
    """Print rows."""
    from rstar2cli.views.tables import render

    sys.stdout.write(render(rows, chosen(format), width=width()))
