"""``rstar2 diff``: what changed between evaluations."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from rstar2cli.cli.help import examples
from rstar2cli.cli.labels import labelled
from rstar2cli.cli.options import FormatOption, OverwriteFile, Seed
from rstar2cli.cli.output import chosen, width
from rstar2cli.core.errors import UsageError

Sources = Annotated[
    list[str],
    typer.Argument(metavar="A B...", help="What rstar2 eval or rollout wrote, oldest first; name=DIR gives a label."),
]
On = Annotated[str, typer.Option("--on", metavar="FIELD", help="Fields that pair problems, separated by commas.")]
MetricName = Annotated[str, typer.Option("--metric", metavar="NAME", help="Metric of the scores to compare.")]
Out = Annotated[str | None, typer.Option("--out", "-o", metavar="FILE", help="Write the whole comparison as JSON too.")]
JsonResult = Annotated[bool, typer.Option("--json", help="Print the whole comparison as JSON.")]


@examples(
    "rstar2 diff base=runs/smoke/eval-base sft=runs/smoke/eval-sft --on problem_id",
    "rstar2 diff a b c -o summary.json",
    "rstar2 diff a b --format md",
)
def main(
    sources: Sources,
    on: On = "problem_id",
    metric: MetricName = "correct",
    out: Out = None,
    overwrite: OverwriteFile = False,
    format: FormatOption = "auto",
    seed: Seed = 0,
    json_result: JsonResult = False,
) -> None:
    """Compare evaluations: scores with intervals, flipped problems, paired tests, configuration.

    Each input is compared with the one before it. The interval is a bootstrap over problems that
    both have; p is McNemar's (the sign test where problems have several samples). Piped, the column row
    tells runs, differences, flips and configuration keys apart. Always exits with 0: a difference is not a failure.
    """
    from rstar2cli.shards.atomic import check_new
    from rstar2cli.views import comparison as text
    from rstar2cli.views.compare import compare, read_side, write_comparison
    from rstar2cli.views.tables import json_line, render

    if len(sources) < 2:
        raise UsageError("diff needs at least two inputs", hint="rstar2 diff A B --on problem_id")
    if out:
        check_new(out, overwrite=overwrite)
    sides = [read_side(label, source, metric=metric) for label, source in labelled(sources)]
    result = compare(sides, on=[name for name in on.split(",") if name], seed=seed)
    if out:
        write_comparison(result, out)
    kind = chosen(format)
    if json_result or kind == "json":
        sys.stdout.write(json_line(result, indent=None if json_result else 2))
    elif kind in ("jsonl", "csv", "md"):
        tables = text.tables(result) if kind == "md" else [text.rows(result)]
        sys.stdout.write("\n".join(render(rows, kind) for rows in tables if rows))
    else:
        sys.stdout.write(text.draw(result, width=width()))
