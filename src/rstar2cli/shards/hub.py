"""Rows of data sets that the ``datasets`` package loads: hub sets, and local directories of data files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rstar2cli.core.errors import EnvironmentMissing, InputMissing


def hub_rows(path: str, config: str | None, split: str, *, name: str, hint: str) -> Iterator[dict[str, Any]]:
    """The rows of one set, called ``name`` in messages. Code shipped with a set is never run.

    Raises ``InputMissing`` (with ``hint``) if it can't be loaded, ``EnvironmentMissing`` without ``datasets``.
    """
    try:
        import datasets  # here: seconds of import that files need not pay
        import huggingface_hub
    except ImportError as error:
        raise EnvironmentMissing(f"{name}: needs the package datasets", hint="pip install datasets") from error
    datasets.disable_progress_bars()  # progress belongs to the caller
    huggingface_hub.logging.set_verbosity_error()  # type: ignore[no-untyped-call]  # it tells each try to connect
    try:
        rows = datasets.load_dataset(path, config, split=split)
    except ConnectionError as error:
        raise InputMissing(f"{name}: the hub can't be reached, and there is no copy of it here", hint=hint) from error
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise InputMissing(f"{name}: {reason}", hint=hint) from error
    for row in rows:
        yield dict(row)
