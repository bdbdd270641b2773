"""Every field of a record and of a configuration has its docstring."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil

import msgspec
import pytest

import rstar2cli
from rstar2cli.core.fielddocs import field_docs
from rstar2cli.records import KINDS, CallRecord, Message, ToolCall, Turn

STRUCTS = [*KINDS.values(), CallRecord, Message, ToolCall, Turn]


def config_classes() -> list[type]:
    found = []
    for module in pkgutil.walk_packages(rstar2cli.__path__, "rstar2cli."):
        if module.name.endswith(".config") and module.name != "rstar2cli.core.config":
            namespace = vars(importlib.import_module(module.name))
            found += [c for c in namespace.values() if dataclasses.is_dataclass(c) and isinstance(c, type)]
    return sorted(set(found), key=lambda cls: f"{cls.__module__}.{cls.__qualname__}")


@pytest.mark.parametrize("cls", STRUCTS, ids=lambda cls: cls.__name__)
def test_record_fields(cls):
    missing = [f.name for f in msgspec.structs.fields(cls) if not field_docs(cls).get(f.name)]
    assert not missing


@pytest.mark.parametrize("cls", config_classes(), ids=lambda cls: cls.__qualname__)
def test_configuration_fields(cls):
    missing = [f.name for f in dataclasses.fields(cls) if not field_docs(cls).get(f.name)]
    assert not missing
    assert cls.__dataclass_params__.frozen
    assert all(f.kw_only for f in dataclasses.fields(cls))
