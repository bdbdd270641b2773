"""The configuration keys of a stage, as text: for ``--keys``, ``--dry-run`` and the reference."""

from __future__ import annotations

from typing import Any

from rstar2cli.core.config import fields_of
from rstar2cli.core.fielddocs import field_docs


def key_rows(cls: type, values: Any = None) -> list[tuple[str, str, str]]:
    """(dotted key, default or present value as TOML-like text, meaning) of every key."""
    rows = []
    for key, info in fields_of(cls).items():
        value = info.default if values is None else _lookup(values, key)
        rows.append((key, _text(value), field_docs(info.owner).get(info.name, "")))
    return rows


def list_keys(cls: type, values: Any = None) -> str:
    """Aligned lines ``key = value  # meaning``."""
    rows = key_rows(cls, values)
    width = max((len(f"{key} = {value}") for key, value, _ in rows), default=0)
    return "\n".join(f"{f'{key} = {value}':<{min(width, 48)}}  # {' '.join(doc.split())}" for key, value, doc in rows)


def _lookup(config: Any, key: str) -> Any:
    for name in key.split("."):
        config = getattr(config, name)
    return config


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "none"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple):
        return "[" + ", ".join(_text(item) for item in value) + "]"
    return str(value)
