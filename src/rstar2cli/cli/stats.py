"""``rstar2 stats``: every column summarised."""

from __future__ import annotations

import sys

from rstar2cli.cli.help import examples
from rstar2cli.cli.options import FormatOption, Inputs, Where
from rstar2cli.cli.output import chosen, emit


@examples("rstar2 stats runs/rollout", "rstar2 rollout problems -m MODEL -o - | rstar2 stats -")
def main(inputs: Inputs, where: Where = None, format: FormatOption = "auto") -> None:
    """Summarise every column: nulls, distinct values, mean, least, quartiles, greatest.

    Numbers by value, texts by characters, lists by items, booleans by the share of true. A line
    before the table (rows of type "figure" in other formats) gives what the kind of record is
    looked at for: reward, tool errors, truncation.
    """
    from rstar2cli.shards.views import connect
    from rstar2cli.stats.describe import describe, figures
    from rstar2cli.views.tables import cell

    with connect({"this": inputs}) as database:
        summary = figures(database, "this", where)
        rows = describe(database, "this", where)
        kind = database.kinds["this"].record_name
    if chosen(format) == "table":
        sys.stdout.write(f"{kind}: " + ", ".join(f"{name} {cell(value)}" for name, value in summary.items()) + "\n\n")
        emit(rows, format)
        return
    emit([*({"column": name, "type": "figure", "mean": value} for name, value in summary.items()), *rows], format)
