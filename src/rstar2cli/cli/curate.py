"""``rstar2 curate``: problems and SFT conversations from generators, files and hub sets."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Literal

import typer

from rstar2cli.cli.stage import Stage, stage
from rstar2cli.curation.config import CurateConfig

_PROBLEMS_PER_PART = 16384
_CONVERSATIONS_PER_PART = 512
"""Each costs a run of its program: a part is what a killed stage may lose."""

As = Annotated[
    Literal["problems", "conversations"] | None,
    typer.Option("--as", help="Records to write; short for --set emit=….", show_default=False),
]


@stage(
    config=CurateConfig,
    examples=[
        "rstar2 curate synth: --limit 2000 --set split=train -o data/train",
        "rstar2 curate synth: --as conversations --limit 112 --set split=train -o data/sft",
        "rstar2 curate raw/*.jsonl hf:openai/gsm8k@main:test -o data/problems --max-rejects 1",
    ],
)
def main(run: Stage[CurateConfig], as_: As = None) -> None:
    """Make, read, filter and split problems; write SFT conversations.

    IN is files, globs, shard directories or - (problem records, or foreign JSONL and Parquet rows), the built-in
    generator (synth:, or synth:family,family), or a hub set (hf:owner/name[@config][:split]). --limit counts
    problems; for synth: it says how many to make. Conversations are made from synth: problems, with what their
    programs really printed in the sandbox.
    """
    from rstar2cli.curation.run import curate, record_class

    if as_ is not None:
        run.config = dataclasses.replace(run.config, emit=as_)
    cls = record_class(run.config)
    sources = _check(run)  # before OUT is touched
    if run.dry_run:
        run.plan(inputs=run.inputs, out=run.out, records=cls.kind(), sources=sources)
        return
    rows_per_part = _PROBLEMS_PER_PART if run.config.emit == "problems" else _CONVERSATIONS_PER_PART
    with run.writer(cls, rows_per_part=rows_per_part) as writer:
        done = writer.existing("id") if run.resume and writer.rows_done else set()
        records = curate(
            run.inputs,
            run.config,
            seed=run.seed,
            on_reject=run.reject,
            limit=run.limit,
            where=run.where,
            strict=run.strict,
            done=done,
            progress=run.progress,
        )
        if not writer.complete:
            run.read_rows += writer.rows_done  # the rejects among those rows come again, they themselves don't
            for record in records:
                run.read_rows += 1
                writer.write(record)
        rows = writer.rows
    run.finish(rows=rows, records=cls.kind())


def _check(run: Stage[CurateConfig]) -> list[str]:
    """Open the inputs without reading them through; what each is."""
    from rstar2cli.curation.sources import hub, synth
    from rstar2cli.shards.resolve import resolve

    found = []
    for name in run.inputs:
        if name.startswith(synth.PREFIX):
            families = synth.chosen_families(name, run.config.families)
            count = run.config.count if run.limit is None else run.limit
            found.append(f"{name} {count} problems of {len(families)} families")
        elif name.startswith(hub.PREFIX):
            path, config, split = hub.parse_name(name)
            found.append(f"{name} set {path}, configuration {config or 'default'}, split {split} (not opened)")
        else:
            found.append(f"{name} {len(resolve([name]))} files")
    return found
