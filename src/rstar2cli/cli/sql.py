"""``rstar2 sql``: questions to shards in SQL."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from rstar2cli.cli.help import examples
from rstar2cli.cli.options import FormatOption
from rstar2cli.cli.output import chosen, emit
from rstar2cli.core.errors import UsageError

_NAMED = re.compile(r"([A-Za-z_]\w*)=(.+)", re.DOTALL)

Query = Annotated[str, typer.Argument(metavar="QUERY", help="One SELECT over the views (DuckDB's SQL).")]
ViewArguments = Annotated[
    list[str],
    typer.Argument(
        metavar="[NAME=]IN...",
        help="A view and its input: file, glob, directory, or - for JSONL on stdin. A single one may go unnamed: this.",
    ),
]


@examples(
    "rstar2 sql 'SELECT verdict, count(*) FROM this GROUP BY ALL' runs/rollout",
    "rstar2 sql \"SELECT extra->>'family' AS family, avg(reward) FROM t JOIN p ON p.id = t.problem_id GROUP BY 1\""
    " t=runs/rollout p=runs/problems",
)
def main(query: Query, inputs: ViewArguments, format: FormatOption = "auto") -> None:
    """Query shards with SQL: a read-only view for each input, typed as its records.

    JSON columns (extra, detail, timings) are JSON: extra->>'family'. The same name may be given
    several times; its inputs are read one after another.
    """
    from rstar2cli.shards.views import connect

    with connect(views_of(inputs)) as database:
        database.execute(query)
        if chosen(format) == "jsonl":
            for batch in database.row_batches():
                emit(batch, "jsonl")
            return
        emit(database.rows(), format)


def views_of(arguments: list[str]) -> dict[str, list[str]]:
    """``NAME=IN`` arguments as view → inputs; one argument alone needs no name. Raises ``UsageError``."""
    views: dict[str, list[str]] = {}
    for argument in arguments:
        match = _NAMED.fullmatch(argument)
        if match is None and len(arguments) > 1:
            raise UsageError(f"{argument}: several inputs need names", hint=f"write NAME={argument}")
        name, value = (match[1], match[2]) if match else ("this", argument)
        views.setdefault(name, []).append(value)
    return views
