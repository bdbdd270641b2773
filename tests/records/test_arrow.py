"""Records as Arrow and back."""

from __future__ import annotations

import msgspec
import pyarrow as pa
import pytest
from records_samples import samples

from rstar2cli.records import KINDS, Trajectory
from rstar2cli.records.arrow import KIND_KEY, arrow_schema, rows_of, to_table
from rstar2cli.records.codec import record_from_row
from rstar2cli.records.fields import field_types


@pytest.mark.parametrize("record", samples(), ids=lambda record: type(record).record_name)
def test_round_trip_of_every_kind(record):
    cls = type(record)
    table = to_table([record, record], cls)
    assert table.schema.equals(arrow_schema(cls))
    back = [record_from_row(row, cls)[0] for row in rows_of(table, cls)]
    if isinstance(record, Trajectory):  # its log-probs are stored in 32 bits
        for item in back:
            assert item.logprobs == [pytest.approx(-0.1, abs=1e-8), None, -2.5]
            item.logprobs = record.logprobs
    assert back == [record, record]


@pytest.mark.parametrize("cls", KINDS.values(), ids=KINDS)
def test_schema_names_its_kind_and_every_field(cls):
    schema = arrow_schema(cls)
    assert schema.metadata[KIND_KEY].decode() == cls.kind()
    assert tuple(schema.names) == cls.__struct_fields__


def test_every_kind_has_a_sample_that_sets_every_field():
    assert {type(record) for record in samples()} == set(KINDS.values())


def test_stored_types_of_a_trajectory():
    schema = arrow_schema(Trajectory)
    assert schema.field("prompt_ids").type.value_type == pa.int32()
    assert schema.field("logprobs").type.value_type == pa.float32()
    assert schema.field("seed").type == pa.int64()
    assert schema.field("extra").type == pa.string()
    assert schema.field("answer").nullable
    assert not schema.field("gold").nullable
    calls = schema.field("turns").type.value_type.field("calls").type.value_type
    assert calls.field("seconds").type == pa.float64()


def test_a_json_column_with_other_text_is_an_error():
    table = pa.table({"extra": ["not json"]})
    with pytest.raises(msgspec.DecodeError):
        list(rows_of(table, Trajectory))


def test_a_type_without_a_stored_form_is_refused():
    class Odd(msgspec.Struct):
        value: set[int]

    with pytest.raises(TypeError, match="no stored form"):
        field_types(Odd)
