"""Records as Arrow: the schema from the struct, rows in both directions.

JSON objects (``extra``, ``detail``, ``timings``) are text in Arrow and Parquet: their
keys differ from row to row, and a column type would have to change with them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from rstar2cli.records.base import Record
from rstar2cli.records.fields import FieldType, field_types

KIND_KEY = b"rstar2.kind"
"""Key of the schema metadata that holds ``name/version``."""
JSON_META = {b"rstar2.type": b"json"}
"""Field metadata that marks JSON text."""

_ARROW = {
    "text": pa.string(),
    "integer": pa.int64(),
    "int32": pa.int32(),
    "number": pa.float64(),
    "float32": pa.float32(),
    "boolean": pa.bool_(),
    "json": pa.string(),
}


@functools.cache
def arrow_schema(cls: type[Record]) -> pa.Schema:
    """The Arrow schema of a record kind; its metadata holds the kind."""
    return pa.schema(_arrow_fields(cls), metadata={KIND_KEY: cls.kind().encode()})


def to_table(records: Sequence[Record], cls: type[Record]) -> pa.Table:
    """Records as a table. Raises ``pa.ArrowInvalid`` for numbers out of range."""
    schema = arrow_schema(cls)
    columns = []
    for name, field in field_types(cls).items():
        convert = _encoder(field)
        values = [getattr(record, name) for record in records]
        if convert is not None:
            values = [convert(value) for value in values]
        columns.append(pa.array(values, schema.field(name).type))
    return pa.Table.from_arrays(columns, schema=schema)


def rows_of(batch: pa.RecordBatch | pa.Table, cls: type[Record]) -> Iterator[dict[str, Any]]:
    """Rows as plain values in the form of JSONL, JSON columns decoded.

    Raises ``msgspec.DecodeError`` if a JSON column holds something else.
    """
    types = field_types(cls)
    decoders = {name: _decoder(types[name]) for name in batch.schema.names if name in types}
    needed = {name: decode for name, decode in decoders.items() if decode is not None}
    for row in batch.to_pylist():
        for name, decode in needed.items():
            row[name] = decode(row[name])
        yield row


def _arrow_fields(cls: type[msgspec.Struct]) -> list[pa.Field]:
    return [
        pa.field(
            name,
            _arrow_type(field),
            nullable=field.nullable,
            metadata=JSON_META if field.kind == "json" else None,
        )
        for name, field in field_types(cls).items()
    ]


def _arrow_type(field: FieldType) -> pa.DataType:
    if field.kind == "list":
        assert field.item is not None
        return pa.list_(pa.field("element", _arrow_type(field.item), nullable=field.item.nullable))
    if field.kind == "struct":
        assert field.struct is not None
        return pa.struct(_arrow_fields(field.struct))
    return _ARROW[field.kind]


_dump = msgspec.json.Encoder(order="deterministic")


@functools.cache
def _encoder(field: FieldType) -> Callable[[Any], Any] | None:
    """How a value becomes what ``pa.array`` takes; null if it is that already."""
    if field.kind == "json":
        return lambda value: None if value is None else _dump.encode(value).decode()
    if field.kind == "list":
        assert field.item is not None
        inner = _encoder(field.item)
        return None if inner is None else (lambda value: None if value is None else [inner(item) for item in value])
    if field.kind == "struct":
        assert field.struct is not None
        parts = [(name, _encoder(part)) for name, part in field_types(field.struct).items()]
        return lambda value: (
            None
            if value is None
            else {
                name: getattr(value, name) if convert is None else convert(getattr(value, name))
                for name, convert in parts
            }
        )
    return None


@functools.cache
def _decoder(field: FieldType) -> Callable[[Any], Any] | None:
    """How a plain Arrow value becomes the JSONL form; null if it is that already."""
    if field.kind == "json":
        return lambda value: {} if value is None else msgspec.json.decode(value)
    if field.kind == "list":
        assert field.item is not None
        inner = _decoder(field.item)
        return None if inner is None else (lambda value: None if value is None else [inner(item) for item in value])
    if field.kind == "struct":
        assert field.struct is not None
        parts = [(name, _decoder(part)) for name, part in field_types(field.struct).items()]
        needed = [(name, convert) for name, convert in parts if convert is not None]

        def convert_struct(value: Any) -> Any:
            for name, convert in needed if value is not None else ():
                if name in value:
                    value[name] = convert(value[name])
            return value

        return convert_struct if needed else None
    return None
