"""``rstar2 head``: the first records."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rstar2cli.cli.help import examples
from rstar2cli.cli.options import FormatOption, Inputs, Where
from rstar2cli.cli.output import chosen, emit

if TYPE_CHECKING:
    from rstar2cli.records import Record

_SHOWN_ITEMS = 8
Count = Annotated[int, typer.Option("--lines", "-n", min=0, help="How many records.")]


@examples(
    "rstar2 head runs/problems",
    "rstar2 head -n 3 --where \"verdict = 'wrong'\" runs/rollout",
    "rstar2 head -n 100 runs/problems -f jsonl > a.jsonl",
)
def main(inputs: Inputs, lines: Count = 10, where: Where = None, format: FormatOption = "auto") -> None:
    """Print the first records; as JSONL they can be read again.

    In a table, long lists are shown by their length.
    """
    from rstar2cli.shards.kinds import detect
    from rstar2cli.shards.reader import read_records

    records = read_records(inputs, detect(inputs), where=where, limit=lines)
    if chosen(format) == "jsonl":
        for record in records:
            emit([_row(record)], "jsonl")
        return
    short = chosen(format) in ("table", "md")
    emit([_shortened(_row(record)) if short else _row(record) for record in islice(records, lines)], format)


def _row(record: Record) -> dict[str, Any]:
    import msgspec

    row: dict[str, Any] = msgspec.to_builtins(record)
    return row


def _shortened(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: f"{len(value)} items" if isinstance(value, list) and len(value) > _SHOWN_ITEMS else value
        for name, value in row.items()
        if name != "kind"
    }
