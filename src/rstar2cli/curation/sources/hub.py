"""Rows of data sets that the ``datasets`` package can load: ``hf:owner/name[@config][:split]``.

A local directory of data files is loaded the same way: ``hf:./directory``.
"""

from __future__ import annotations

from collections.abc import Iterator

from rstar2cli.core.errors import EnvironmentMissing, InputMissing, UsageError
from rstar2cli.curation.sources.rows import Row

PREFIX = "hf:"
_DEFAULT_SPLIT = "train"


def parse_name(name: str) -> tuple[str, str | None, str]:
    """``hf:owner/name@config:split`` as (path, config, split). Raises ``UsageError``."""
    path, _, split = name.removeprefix(PREFIX).partition(":")
    path, _, config = path.partition("@")
    if not path:
        raise UsageError(f"{name}: no name of a data set", hint="hf:owner/name, hf:owner/name:test, hf:./directory")
    return path, config or None, split or _DEFAULT_SPLIT


def hub_rows(name: str) -> Iterator[Row]:
    """The rows of one set. Raises ``InputMissing`` if it can't be loaded, ``EnvironmentMissing`` without ``datasets``.

    Code shipped with a data set is never run.
    """
    path, config, split = parse_name(name)
    try:
        import datasets  # here: seconds of import that other sources need not pay
    except ImportError as error:
        raise EnvironmentMissing(f"{name}: needs the package datasets", hint="pip install datasets") from error
    # Progress belongs to the caller; this library draws its own bars by default.
    datasets.disable_progress_bars()
    try:
        rows = datasets.load_dataset(path, config, split=split)
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise InputMissing(f"{name}: {reason}", hint="check name, split and network; or give local files") from error
    for number, values in enumerate(rows, start=1):
        yield Row(name, number, dict(values))
