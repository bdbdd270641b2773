"""The committed schemas are those of the code, and agree with the reader."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import msgspec
import pytest
from records_samples import samples

from rstar2cli.core.fielddocs import field_docs
from rstar2cli.records import KINDS
from rstar2cli.records.jsonschema import schema, schema_files

SCHEMAS = Path(__file__).parents[2] / "schemas"


def test_committed_schemas_are_current():
    committed = {path.name: path.read_text(encoding="utf-8") for path in SCHEMAS.glob("*.json")}
    assert committed == schema_files(), "run: just docs"


@pytest.mark.parametrize("record", samples(), ids=lambda record: type(record).record_name)
def test_rows_are_valid_and_misfits_are_not(record):
    wanted = schema(type(record))
    row = msgspec.to_builtins(record)
    jsonschema.validate(row, wanted)
    jsonschema.validate({**row, "unknown": 1}, wanted)
    for broken in ({**row, "extra": 3}, {**row, "kind": "other/1"}, {k: v for k, v in row.items() if k != "kind"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(broken, wanted)


@pytest.mark.parametrize("cls", KINDS.values(), ids=KINDS)
def test_every_field_is_explained(cls):
    assert set(cls.__struct_fields__) <= set(field_docs(cls))
    properties = schema(cls)["properties"]
    assert all("description" in field for name, field in properties.items() if name != "kind")
