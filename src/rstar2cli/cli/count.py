"""``rstar2 count``: how many records, in groups if wanted."""

from __future__ import annotations

from typing import Annotated

import typer

from rstar2cli.cli.help import examples
from rstar2cli.cli.options import FormatOption, Inputs, Where
from rstar2cli.cli.output import emit

By = Annotated[
    str | None,
    typer.Option(
        "--by",
        metavar="FIELDS",
        help="Fields, keys of extra, or column.key of a JSON column, separated by commas.",
        show_default=False,
    ),
]


@examples(
    "rstar2 count runs/problems --by source,split",
    "rstar2 count runs/rollout --by verdict,finish --where 'n_tool_calls > 0'",
)
def main(inputs: Inputs, by: By = None, where: Where = None, format: FormatOption = "auto") -> None:
    """Count records; without --by the bare number is printed."""
    from rstar2cli.shards.views import connect
    from rstar2cli.stats.count import count_by

    names = [name.strip() for name in (by or "").split(",") if name.strip()]
    with connect({"this": inputs}) as database:
        rows = count_by(database, "this", names, where)
    if not names and format == "auto":
        print(rows[0]["count"])
        return
    emit(rows, format)
