"""Configuration: frozen dataclasses filled from layers, every error reported at once.

Order, strongest first: command-line flag, ``--set``, environment ``RSTAR2_*``,
``-c`` TOML file, default. Keys are dotted paths into nested dataclasses.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import tomllib
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from rstar2cli.core.errors import InputMissing, UsageError

Config = TypeVar("Config")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Layer:
    """Values of one origin, as dotted key → value."""

    origin: str
    """Where they come from, for messages (`--set`, `run.toml`, `RSTAR2_*`)."""
    values: Mapping[str, Any]
    """Values; texts are parsed by the type of their field."""


def toml_layer(path: str) -> Layer:
    """The layer of a TOML file. Raises ``InputMissing`` or ``UsageError`` naming the place."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputMissing(f"{path}: can't read configuration: {error.strerror}") from error
    try:
        return Layer(origin=path, values=flatten(tomllib.loads(text)))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: not valid TOML: {error}") from error


def set_layer(items: list[str]) -> Layer:
    """The layer of ``--set key=value`` options."""
    values: dict[str, Any] = {}
    bad = []
    for item in items:
        key, equals, value = item.partition("=")
        if not equals or not key:
            bad.append(item)
        values[key.strip()] = value
    if bad:
        raise UsageError(f"--set takes key=value, not {', '.join(map(repr, bad))}")
    return Layer(origin="--set", values=values)


def environment_layer(values: Mapping[str, str]) -> Layer:
    """The layer of ``RSTAR2_*`` variables (:func:`rstar2cli.core.process.config_environment`)."""
    return Layer(origin="environment", values=values)


def resolve(cls: type[Config], layers: list[Layer]) -> Config:
    """Build ``cls`` from its defaults and the layers, weakest first.

    Raises ``UsageError`` with all unknown keys (nearest known name given), values of a wrong
    type and failed checks (``__post_init__`` raising ``ValueError``) in one message.
    """
    known = fields_of(cls)
    problems: list[str] = []
    values: dict[str, Any] = {}
    for layer in layers:
        for key, raw in layer.values.items():
            if key not in known:
                problems.append(f"{layer.origin}: unknown key {key!r}{_nearest(key, known)}")
                continue
            try:
                values[key] = _convert(raw, known[key].type)
            except ValueError as error:
                problems.append(f"{layer.origin}: {key} = {raw!r}: {error}")
    built = None if problems else _build(cls, values, "", problems)
    if problems:
        raise UsageError("configuration: " + "\n  ".join(problems), hint="list all keys of a stage with --keys")
    return typing.cast(Config, built)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FieldInfo:
    """One configurable value."""

    type: Any
    """Its type."""
    default: Any
    """Its default."""
    owner: type
    """The dataclass that declares it."""
    name: str
    """Its name there."""


def fields_of(cls: type, prefix: str = "") -> dict[str, FieldInfo]:
    """All dotted keys of a configuration class, nested ones included."""
    hints = get_type_hints(cls)
    result: dict[str, FieldInfo] = {}
    for field in dataclasses.fields(cls):
        kind = hints[field.name]
        if dataclasses.is_dataclass(kind) and isinstance(kind, type):
            result.update(fields_of(kind, f"{prefix}{field.name}."))
            continue
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        result[prefix + field.name] = FieldInfo(type=kind, default=default, owner=cls, name=field.name)
    return result


def to_dict(config: Any) -> dict[str, Any]:
    """The resolved configuration as JSON-ready nested dicts."""
    return typing.cast(dict[str, Any], _plain(dataclasses.asdict(config)))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def flatten(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[prefix + key] = value
    return flat


def _nearest(key: str, known: Mapping[str, FieldInfo]) -> str:
    tails = {name.rsplit(".", 1)[-1]: name for name in known}
    close = difflib.get_close_matches(key, list(known), n=1, cutoff=0.6)
    close = close or [tails[tail] for tail in difflib.get_close_matches(key.rsplit(".", 1)[-1], list(tails), n=1)]
    return f"; did you mean {close[0]!r}?" if close else ""


def _build(cls: type[Config], values: dict[str, Any], prefix: str, problems: list[str]) -> Config | None:
    hints = get_type_hints(cls)
    arguments: dict[str, Any] = {}
    nested: set[str] = set()
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]  # callers pass dataclasses
        kind = hints[field.name]
        key = prefix + field.name
        if dataclasses.is_dataclass(kind) and isinstance(kind, type):
            nested.add(field.name)
            arguments[field.name] = _build(kind, values, key + ".", problems)
        elif key in values:
            arguments[field.name] = values[key]
    if any(value is None and key in nested for key, value in arguments.items()):
        return None  # its own checks would stumble over the part that failed
    try:
        return cls(**arguments)
    except ValueError as error:
        problems.append(f"{prefix.rstrip('.') or cls.__name__}: {error}")
    except TypeError as error:
        problems.append(f"{prefix.rstrip('.') or cls.__name__}: {error}")
    return None


def _convert(raw: Any, kind: Any) -> Any:
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _convert_union(raw, kind)
    if origin is Literal:
        choices = get_args(kind)
        if raw in choices:
            return raw
        raise ValueError(f"choose from {', '.join(map(str, choices))}")
    if origin is tuple:
        items = _items(raw) if isinstance(raw, str) else raw
        if not isinstance(items, list | tuple):
            raise ValueError("expected a list")
        return tuple(_convert(item, get_args(kind)[0]) for item in items)
    return _convert_scalar(raw, kind)


def _items(text: str) -> Any:
    """``a,b``, or a list as ``--keys`` prints it."""
    if text.strip().startswith("["):
        try:
            return json.loads(text)
        except ValueError:
            raise ValueError('not a list; write a,b or ["a", "b"]') from None
    return [part for part in text.split(",") if part]


def _convert_union(raw: Any, kind: Any) -> Any:
    options = [option for option in get_args(kind) if option is not type(None)]
    if raw is None or (isinstance(raw, str) and raw in ("", "none", "null")):
        return None
    for option in options:
        try:
            return _convert(raw, option)
        except ValueError as error:
            last = error
    raise last


def _convert_scalar(raw: Any, kind: Any) -> Any:
    if kind is bool:
        if isinstance(raw, bool):
            return raw
        if isinstance(raw, str) and raw.lower() in ("true", "1", "yes", "on"):
            return True
        if isinstance(raw, str) and raw.lower() in ("false", "0", "no", "off"):
            return False
        raise ValueError("expected true or false")
    if isinstance(raw, bool):
        raise ValueError(f"expected {kind.__name__}")
    if kind is int:
        if isinstance(raw, float):
            raise ValueError("expected a whole number")
        try:
            return int(raw)
        except (TypeError, ValueError):
            raise ValueError("expected a whole number") from None
    if kind is float:
        try:
            return float(raw)
        except (TypeError, ValueError):
            raise ValueError("expected a number") from None
    if kind is str:
        if not isinstance(raw, str):
            raise ValueError("expected text")
        return raw
    raise ValueError(f"no rule for fields of type {kind!r}")
