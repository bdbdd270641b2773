"""``rstar2 validate``: every bad row of an input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rstar2cli.cli.help import examples
from rstar2cli.cli.options import FormatOption, Inputs, Quiet, Strict
from rstar2cli.cli.output import chosen, emit
from rstar2cli.cli.progress import reporter
from rstar2cli.cli.say import say
from rstar2cli.core.errors import DataError, UsageError

if TYPE_CHECKING:
    from rstar2cli.shards.rejects import Reject
    from rstar2cli.shards.validate import Report

Kind = Annotated[
    str | None,
    typer.Option("--kind", metavar="KIND", help="Kind that every row must have (default: the first row's)."),
]


@examples("rstar2 validate runs/problems", "rstar2 validate data/*.jsonl.zst --kind problem --strict -f csv")
def main(
    inputs: Inputs, kind: Kind = None, strict: Strict = False, quiet: Quiet = False, format: FormatOption = "auto"
) -> None:
    """Check files and list every bad row with its place and reason; exits with 3 if there are any.

    Also compares shard directories with the rows and digests of their manifests. Of a training run the metrics, the
    rollouts and the selections are checked, of an evaluation the scores and the trajectories.
    """
    from rstar2cli.records import KINDS
    from rstar2cli.shards.validate import companions, validate

    if kind is not None and kind not in KINDS:
        raise UsageError(f"--kind {kind}: unknown", hint=f"known: {', '.join(KINDS)}")
    faults: list[dict[str, Any]] = []
    stream = chosen(format) == "jsonl"

    def on_fault(reject: Reject) -> None:
        row = {"file": reject.file, "line": reject.line or None, "reason": reject.reason}
        if stream:
            emit([{**row, "raw": reject.raw}], "jsonl")
        else:
            faults.append(row)

    groups = [inputs]
    if kind is None:
        groups += [[beside] for name in inputs for beside in companions(name)]
    cls = KINDS[kind] if kind else None
    reports = [validate(group, on_fault, cls=cls, strict=strict, progress=reporter(quiet=quiet)) for group in groups]
    if faults:
        emit(faults, format)
    summary = "; ".join(map(_summary, reports))
    count = sum(report.faults for report in reports)
    if count:
        raise DataError(f"{count} faults; {summary}", hint="mend or remove what is listed, then make it again")
    if not quiet:
        say(summary)


def _summary(report: Report) -> str:
    if not report.record:
        return f"no row of {report.files} files says a kind of record"
    unknown = f", unknown fields kept in extra: {', '.join(report.unknown)}" if report.unknown else ""
    verified = f", {report.verified} manifests agree" if report.verified else ""
    return f"{report.rows} good {report.record} rows in {report.files} files{verified}{unknown}"
