"""``rstar2 show``: one record as a person reads it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rstar2cli.cli.help import examples
from rstar2cli.cli.options import OverwriteFile
from rstar2cli.cli.output import width
from rstar2cli.core.errors import UsageError

if TYPE_CHECKING:
    from rstar2cli.records import Record
    from rstar2cli.views.transcript import Block, Decode

Source = Annotated[
    str, typer.Argument(metavar="D", help="File, shard directory, run directory, or - for JSONL on stdin.")
]
Wanted = Annotated[
    str | None,
    typer.Argument(
        metavar="[ID]", help="Id, beginning of an id, problem id, or row number from 1 (default: the first)."
    ),
]
ModelOption = Annotated[
    str | None,
    typer.Option("--model", "-m", metavar="MODEL", help="Whose tokenizer shows the prompt and the tokens."),
]
Tokens = Annotated[bool, typer.Option("--tokens", help="Show the exact tokens and which were trained on (needs -m).")]
Html = Annotated[str | None, typer.Option("--html", metavar="FILE", help="Write one self-contained HTML page instead.")]
Raw = Annotated[bool, typer.Option("--json", help="Print the record itself as JSON.")]


@examples(
    "rstar2 show runs/smoke/eval-sft",
    "rstar2 show runs/smoke/rl/rollouts 3 -m runs/smoke/rl --tokens",
    "rstar2 show runs/smoke/conversations --html first.html",
)
def main(
    source: Source,
    wanted: Wanted = None,
    model: ModelOption = None,
    tokens: Tokens = False,
    html: Html = None,
    overwrite: OverwriteFile = False,
    raw: Raw = False,
) -> None:
    """Show one trajectory or conversation: reasoning, code, tool output, answer, verdict, reward.

    Of a training run also what RoC thought of it. Any other record is shown as its fields.
    """
    from rstar2cli.records import Score, Trajectory
    from rstar2cli.shards.atomic import check_new
    from rstar2cli.views import find
    from rstar2cli.views.tables import json_line
    from rstar2cli.views.terminal import draw
    from rstar2cli.views.transcript import token_transcript, transcript

    if html:
        check_new(html, overwrite=overwrite)
    if raw and (html or tokens):
        raise UsageError("--json excludes --html and --tokens")
    if tokens and model is None:
        raise UsageError("--tokens needs a tokenizer", hint="give the model that made them with -m MODEL")
    source = find.readable(source)
    record: Record = find.find_record(source, wanted)
    if raw:
        import msgspec

        sys.stdout.write(json_line(msgspec.to_builtins(record)))
        return
    blocks: list[Block] = []
    if isinstance(record, Score) and (scored := find.trajectory_of(source, record)) is not None:
        blocks = transcript(record)
        record = scored
    decode = _decoder(model) if model else None
    if tokens:
        if not isinstance(record, Trajectory):
            raise UsageError(f"--tokens shows trajectories; this is a {record.record_name}")
        assert decode is not None
        blocks += token_transcript(record, decode)
    else:
        selection = find.selection_of(source, record) if isinstance(record, Trajectory) and source != "-" else None
        blocks += transcript(record, selection=selection, decode=decode)
    if html:
        _write_page(blocks, html)
    else:
        columns = width()
        sys.stdout.write(draw(blocks, width=columns, color=columns is not None))


def _decoder(model: str) -> Decode:
    """Token ids to text, special tokens included."""
    from rstar2cli.policy.load import load_tokenizer

    tokenizer = load_tokenizer(model)
    return lambda ids: str(tokenizer.decode(list(ids), skip_special_tokens=False))


def _write_page(blocks: list[Block], path: str) -> None:
    from rstar2cli.shards.atomic import write_bytes
    from rstar2cli.views.page import page

    write_bytes(Path(path), page(blocks, title=blocks[0].title).encode())
    print(path)
