"""What is checked before a stage, and said after one that failed, about the output that was there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rstar2cli.core import process
from rstar2cli.core.errors import EnvironmentMissing, RstarError

if TYPE_CHECKING:
    from rstar2cli.cli.stage import Stage


@contextlib.contextmanager
def guarded(run: Stage[Any], inputs: Sequence[str]) -> Iterator[None]:
    """Around the work of a stage that reads ``inputs``.

    Raises ``OutputConflict`` if the output would take the place of what is read. An error of the work says where the
    old output is kept, and whether there is a new one to go on with.
    """
    if process.ranks().main:
        from rstar2cli.shards.overlap import refuse_own_input, sidecars

        outputs = [run.out, *sidecars(run.out), *([run.rejects] if run.rejects else [])]
        refuse_own_input(inputs, outputs, model=run.model)
    try:
        yield
    except RstarError as error:
        _tell_old_output(run)
        if isinstance(error, EnvironmentMissing) and _begun(Path(run.out)):
            error.hint = f"{error.hint}; what is done stays, and --resume goes on from there"
        raise


def _tell_old_output(run: Stage[Any]) -> None:
    from rstar2cli.shards.aside import Aside

    aside = Aside(Path(run.out))
    if aside.held:
        run.warn(f"the old output is kept in {aside.place} until the new one is complete")


def _begun(out: Path) -> bool:
    """Whether there is an unfinished output."""
    from rstar2cli.shards.resolve import unfinished

    if not out.is_dir() or (out / "manifest.json").exists():
        return False
    return (out / "run.json").exists() or unfinished(out)
