"""``rstar2 schema``: the fields of a record kind."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rstar2cli.cli.help import examples
from rstar2cli.cli.options import FormatOption
from rstar2cli.cli.output import emit
from rstar2cli.core.errors import UsageError

What = Annotated[
    str,
    typer.Argument(
        metavar="WHAT", help="A kind (problem, conversation, trajectory, selection, score, metric) or an input."
    ),
]
JsonSchema = Annotated[bool, typer.Option("--json-schema", help="Print the JSON Schema of a JSONL row instead.")]


@examples("rstar2 schema trajectory", "rstar2 schema runs/rollout", "rstar2 schema problem --json-schema > p.json")
def main(what: What, json_schema: JsonSchema = False, format: FormatOption = "auto") -> None:
    """Print the fields of a record kind, or of what a file or directory holds."""
    from pathlib import Path

    from rstar2cli.records import KINDS
    from rstar2cli.shards.kinds import detect

    if what in KINDS and not Path(what).exists():
        cls = KINDS[what]
    elif what.isidentifier() and not Path(what).exists():
        raise UsageError(f"{what}: neither a kind nor an input", hint=f"kinds: {', '.join(KINDS)}")
    else:
        cls = detect([what])
    if json_schema:
        from rstar2cli.records.jsonschema import schema_files

        print(schema_files()[f"{cls.record_name}.json"], end="")
        return
    emit(_rows(cls), format)


def _rows(cls: Any, prefix: str = "") -> list[dict[str, str]]:
    from rstar2cli.core.fielddocs import field_docs
    from rstar2cli.records.fields import field_types

    docs = field_docs(cls)
    rows = [] if prefix else [{"field": "kind", "type": "text", "meaning": cls.kind()}]
    for name, field in field_types(cls).items():
        meaning = " ".join(docs.get(name, "").split())
        rows.append({"field": prefix + name, "type": field.describe(), "meaning": meaning})
        inner = field
        while inner.item is not None:
            inner = inner.item
        if inner.struct is not None:
            rows += _rows(inner.struct, f"{prefix}{name}.")
    return rows
