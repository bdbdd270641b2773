"""The type of every field of a record, in the one form that Arrow, JSON Schema and the codec read."""

from __future__ import annotations

import functools
import types
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

Kind = Literal["text", "integer", "int32", "number", "float32", "boolean", "json", "list", "struct"]


@dataclass(frozen=True, kw_only=True)
class FieldType:
    """One type, unwrapped from its annotations."""

    kind: Kind
    """What is stored."""
    nullable: bool = False
    """Whether null is a value."""
    item: FieldType | None = None
    """For lists: the type of an item."""
    struct: type[msgspec.Struct] | None = None
    """For structs: their class."""
    choices: tuple[str, ...] = ()
    """For texts with fixed values: these."""

    def describe(self) -> str:
        """The type as people read it: ``list of int32``, ``text or null``."""
        if self.item is not None:
            text = f"list of {self.item.describe()}"
        elif self.choices:
            text = " | ".join(self.choices)
        elif self.struct is not None:
            text = self.struct.__name__
        else:
            text = self.kind
        return f"{text} or null" if self.nullable else text


@functools.cache
def field_types(cls: type[msgspec.Struct]) -> dict[str, FieldType]:
    """Stored fields of a struct in order. Raises ``TypeError`` for a type that no rule covers."""
    hints = get_type_hints(cls, include_extras=True)
    return {name: parse_type(hints[name]) for name in cls.__struct_fields__}


_PLAIN: dict[type, Kind] = {str: "text", int: "integer", float: "number", bool: "boolean"}


def parse_type(annotation: Any) -> FieldType:
    """The stored type of one annotation. Raises ``TypeError`` for a type that no rule covers."""
    origin = get_origin(annotation)
    if origin is Annotated:
        base, *metas = get_args(annotation)
        stored = next((meta.extra["arrow"] for meta in metas if isinstance(meta, msgspec.Meta) and meta.extra), None)
        return FieldType(kind=stored) if stored else parse_type(base)
    if origin in (Union, types.UnionType):
        options = [option for option in get_args(annotation) if option is not type(None)]
        if len(options) == 1:
            inner = parse_type(options[0])
            return FieldType(
                kind=inner.kind, nullable=True, item=inner.item, struct=inner.struct, choices=inner.choices
            )
    if origin is Literal:
        return FieldType(kind="text", choices=get_args(annotation))
    if origin is list:
        return FieldType(kind="list", item=parse_type(get_args(annotation)[0]))
    if origin is dict:
        return FieldType(kind="json")
    if isinstance(annotation, type) and annotation in _PLAIN:
        return FieldType(kind=_PLAIN[annotation])
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return FieldType(kind="struct", struct=annotation)
    raise TypeError(f"no stored form for {annotation!r}")
