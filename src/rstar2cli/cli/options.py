"""Options that several commands share, each declared once."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

Format = Literal["auto", "table", "jsonl", "json", "csv", "md"]

Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="IN...", help="Files, globs, shard or run directories, or - for JSONL on stdin.", show_default=False
    ),
]
Out = Annotated[
    str,
    typer.Option(
        "--out",
        "-o",
        metavar="OUT",
        help="Directory, file by its ending, or - for JSONL on stdout.",
        show_default=False,
    ),
]
RunOut = Annotated[str, typer.Option("--out", "-o", metavar="OUT", help="Run directory to write.", show_default=False)]
Model = Annotated[
    str,
    typer.Option(
        "--model", "-m", metavar="MODEL", help="Model directory, run directory, or hub id.", show_default=False
    ),
]
ConfigFile = Annotated[
    str | None, typer.Option("--config", "-c", metavar="FILE", help="TOML file of configuration.", show_default=False)
]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Set one configuration key (repeatable).", show_default=False),
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of every random choice.")]
Limit = Annotated[
    int | None, typer.Option("--limit", min=0, help="Use at most this many input records.", show_default=False)
]
Where = Annotated[
    str | None,
    typer.Option("--where", metavar="SQL", help="Use only input records for which this holds.", show_default=False),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check everything, print what would run, and stop.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on where an earlier run of the same command stopped.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace OUT if it exists.")]
OverwriteFile = Annotated[bool, typer.Option("--overwrite", help="Replace FILE if it exists.")]
JsonResult = Annotated[bool, typer.Option("--json", help="Print one JSON result object instead of the path.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no warnings.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Tell progress every second, and each rejected row.")]
Rejects = Annotated[
    str | None,
    typer.Option("--rejects", metavar="FILE", help="Where rejected rows go (default: beside OUT).", show_default=False),
]
MaxRejects = Annotated[
    float,
    typer.Option("--max-rejects", min=0.0, max=1.0, help="Share of rejected rows up to which the exit code is 0."),
]
RowsPerPart = Annotated[
    int | None,
    typer.Option(
        "--rows-per-part",
        min=1,
        metavar="N",
        help="Rows of a part of OUT (default: the stage's own).",
        show_default=False,
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Unknown fields of input rows are errors.")]
Keys = Annotated[bool, typer.Option("--keys", help="List every configuration key with its default, and stop.")]
FormatOption = Annotated[
    Format, typer.Option("--format", "-f", help="auto = table on a terminal, JSONL when piped.", show_default=True)
]
