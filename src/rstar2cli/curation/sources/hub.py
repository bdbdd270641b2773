"""Rows of data sets that the ``datasets`` package can load: ``hf:owner/name[@config][:split]``.

A local directory of data files is loaded the same way: ``hf:./directory``.
"""

from __future__ import annotations

from collections.abc import Iterator

from rstar2cli.core.errors import UsageError
from rstar2cli.curation.sources.rows import Row
from rstar2cli.shards.hub import hub_rows

PREFIX = "hf:"
_DEFAULT_SPLIT = "train"


def parse_name(name: str) -> tuple[str, str | None, str]:
    """``hf:owner/name@config:split`` as (path, config, split). Raises ``UsageError``."""
    path, _, split = name.removeprefix(PREFIX).partition(":")
    path, _, config = path.partition("@")
    if not path:
        raise UsageError(f"{name}: no name of a data set", hint="hf:owner/name, hf:owner/name:test, hf:./directory")
    return path, config or None, split or _DEFAULT_SPLIT


def rows(name: str) -> Iterator[Row]:
    """The rows of one set. Raises what :func:`rstar2cli.shards.hub.hub_rows` does."""
    path, config, split = parse_name(name)
    found = hub_rows(path, config, split, name=name, hint="check name, split and network; or give local files")
    for number, values in enumerate(found, start=1):
        yield Row(name, number, values)
