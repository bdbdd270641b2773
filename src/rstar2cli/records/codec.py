"""Rows to records and back, strictly: every misfit says what was expected, what was there and at which path."""

from __future__ import annotations

import functools
import re
from typing import Any, TypeVar

import msgspec

from rstar2cli.records.base import Record
from rstar2cli.records.fields import FieldType, field_types

R = TypeVar("R", bound=Record)

_SHOWN_CHARS = 60
_NAMES = {"int": "integer", "float": "number", "str": "string", "bool": "boolean"}
_MESSAGE = re.compile(r"^(?P<text>.*?)(?: - at `(?P<path>\$.*)`)?$", re.DOTALL)
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")


class RowError(ValueError):
    """A row that is no record of the wanted kind; the text says why."""


class NewerVersion(RowError):
    """A record version that this version of rstar2 does not know yet."""


@functools.cache
def _line_decoder(cls: type[R]) -> msgspec.json.Decoder[R]:
    return msgspec.json.Decoder(cls)


_encoder = msgspec.json.Encoder(order="deterministic")


def encode_line(record: Record) -> bytes:
    """The record as one JSONL line, newline included; keys of JSON objects are sorted."""
    return _encoder.encode(record) + b"\n"


def decode_line(line: bytes, cls: type[R], *, strict: bool = False) -> tuple[R, list[str]]:
    """The record in a line, and the names of unknown top-level fields, moved to ``extra``.

    Raises :class:`RowError` (:class:`NewerVersion` for a version of the future); with
    ``strict`` unknown fields are errors too.
    """
    if line.startswith(_prefix(cls)):
        try:
            return _line_decoder(cls).decode(line), []
        except (msgspec.DecodeError, RecursionError):
            pass  # the slow path below tells what is wrong, or moves unknown fields to `extra`
    try:
        row = msgspec.json.decode(line)
    except msgspec.DecodeError as error:
        raise RowError(f"not JSON: {_plain(str(error))}") from None
    except RecursionError:
        raise RowError("not JSON that can be read: nested too deeply") from None
    if not isinstance(row, dict):
        raise RowError(f"expected object, got {_show(row)}")
    check_kind(row.get("kind"), cls)
    return record_from_row(row, cls, strict=strict)


def check_kind(kind: Any, cls: type[Record]) -> None:
    """Raise :class:`RowError` unless ``kind`` (``name/version``) is one that ``cls`` reads."""
    if kind == cls.kind():
        return
    if kind is None:
        raise RowError(f'no "kind": every row of this input begins with "kind": "{cls.kind()}"')
    name, slash, version = str(kind).partition("/")
    if not slash or not version.isdigit():
        raise RowError(f'expected kind "{cls.kind()}", got {_show(kind)} at $.kind')
    if name != cls.record_name:
        raise RowError(f"expected a {cls.record_name}, got a {name} ({_show(kind)} at $.kind)")
    if int(version) > cls.record_version:
        raise NewerVersion(
            f"{kind} was written by a newer rstar2; this one reads {name} up to version {cls.record_version}"
        )
    raise RowError(f"{kind} is no known version of {name}; this rstar2 reads {cls.kind()}")


def record_from_row(row: dict[str, Any], cls: type[R], *, strict: bool = False) -> tuple[R, list[str]]:
    """As :func:`decode_line`, for a row already parsed. ``row`` may be changed; its kind is not checked."""
    row.pop("kind", None)
    known = cls.__struct_fields__
    unknown = [name for name in row if name not in known]
    if unknown and strict:
        raise RowError(f"unknown field {_show(unknown[0])} at $ (--strict)")
    if unknown:
        extra = row.get("extra")
        moved = {name: row.pop(name) for name in unknown}
        row["extra"] = {**moved, **extra} if isinstance(extra, dict) else (moved if extra is None else extra)
    try:
        return msgspec.convert(row, cls), unknown
    except msgspec.ValidationError as error:
        raise RowError(describe(str(error), row, cls)) from None


def describe(message: str, row: Any, cls: type[msgspec.Struct]) -> str:
    """A validation message of msgspec in our words, with the value that was found."""
    match = _MESSAGE.match(message)
    assert match is not None
    text, path = match["text"], match["path"] or "$"
    value = _at(row, path)
    if text.startswith("Expected "):
        return f"expected {_expected(text)}, got {_show(value)} at {path}"
    if text.startswith("Invalid enum value"):
        choices = _choices(cls, path)
        wanted = "one of " + ", ".join(map(_show, choices)) if choices else "another value"
        return f"expected {wanted}, got {_show(value)} at {path}"
    if missing := re.match(r"Object missing required field `(.*)`", text):
        return f'missing field "{missing[1]}" at {path}'
    if unknown := re.match(r"Object contains unknown field `(.*)`", text):
        return f'unknown field "{unknown[1]}" at {path}'
    return f"{_plain(text)} at {path}"


def _expected(text: str) -> str:
    body = text.removeprefix("Expected ")
    body = body.split(", got ")[0]
    return re.sub(r"`([^`]*)`", lambda m: " or ".join(_NAMES.get(part, part) for part in m[1].split(" | ")), body)


def _plain(text: str) -> str:
    text = text.removeprefix("JSON is malformed: ")
    return text[:1].lower() + text[1:]


def _show(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"


def _steps(path: str) -> list[str | int]:
    return [name if name else (index if index == "..." else int(index)) for name, index in _STEP.findall(path)]


def _at(row: Any, path: str) -> Any:
    """The value at a path of msgspec; the nearest holder where the path is not exact (``[...]``)."""
    for step in _steps(path):
        try:
            row = row[step]
        except (KeyError, IndexError, TypeError):
            return row
    return row


def _choices(cls: type[msgspec.Struct], path: str) -> tuple[str, ...]:
    field = FieldType(kind="struct", struct=cls)
    for step in _steps(path):
        if isinstance(step, int):
            inner = field.item
        else:
            inner = field_types(field.struct).get(step) if field.struct else None
        if inner is None:
            return ()
        field = inner
    return field.choices


@functools.cache
def _prefix(cls: type[Record]) -> tuple[bytes, ...]:
    tag = b'"' + cls.kind().encode() + b'"'
    return b'{"kind":' + tag, b'{"kind": ' + tag
