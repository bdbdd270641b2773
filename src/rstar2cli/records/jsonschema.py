"""JSON Schemas of the records, for ``schemas/``: made from the structs and their field docstrings."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from rstar2cli.core.fielddocs import field_docs
from rstar2cli.records import KINDS
from rstar2cli.records.base import Record

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_files() -> dict[str, str]:
    """File name → text of every record's schema."""
    return {f"{name}.json": json.dumps(schema(cls), indent=2, ensure_ascii=False) + "\n" for name, cls in KINDS.items()}


def schema(cls: type[Record]) -> dict[str, Any]:
    """The JSON Schema of one JSONL row. Unknown fields are allowed: readers keep them in ``extra``."""
    (root,), components = msgspec.json.schema_components([cls], ref_template="#/$defs/{name}")
    structs = {struct.__name__: struct for struct in _structs(cls)}
    for name, definition in components.items():
        if name in structs:
            _describe(definition, structs[name])
    own = components.pop(cls.__name__)
    own["additionalProperties"] = True
    own["required"] = ["kind", *(name for name in own.get("required", []) if name != "kind")]
    assert root == {"$ref": f"#/$defs/{cls.__name__}"}
    return {"$schema": DIALECT, "$id": f"{cls.record_name}.json", **own, "$defs": components}


def _describe(definition: dict[str, Any], cls: type[msgspec.Struct]) -> None:
    docs = field_docs(cls)
    for name, field in definition.get("properties", {}).items():
        if name in docs:
            field["description"] = " ".join(docs[name].split())


def _structs(cls: type[msgspec.Struct]) -> list[type[msgspec.Struct]]:
    from rstar2cli.records.fields import field_types

    found = [cls]
    for field in field_types(cls).values():
        inner = field
        while inner.item is not None:
            inner = inner.item
        if inner.struct is not None:
            found += _structs(inner.struct)
    return found
