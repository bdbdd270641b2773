"""What a run replaces, kept until the new output is complete: in ``OUT/.replaced``, back in its place if nothing came.

Inside OUT, so that its lock holds for both and a move is a rename. Two names, so that a kill at any moment leaves one
thing to do: what lies in ``.replacing`` was being moved, there or back, and goes back; ``.replaced`` is whole.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from rstar2cli.shards.atomic import sync_directory, telling

REPLACED, REPLACING = ".replaced", ".replacing"


class Aside:
    """The place of a directory's old content. For the holder of its lock; raises what ``output_error`` gives."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._whole = directory / REPLACED
        self._moving = directory / REPLACING

    @property
    def held(self) -> bool:
        """Whether there is old content aside."""
        return os.path.isdir(self._whole)  # noqa: PTH112 - Path.is_dir raises where the directory may not be entered

    @property
    def place(self) -> Path:
        """Where it lies."""
        return self._whole

    def mend(self) -> None:
        """Undo a move that was cut short."""
        if self._moving.is_dir():
            with telling(self._directory):
                self._move_back()

    def take(self, names: Iterable[str]) -> None:
        """Move these entries aside. If older ones are there already, these came of a run that was never completed,
        and are removed."""
        wanted = [name for name in names if (self._directory / name).exists()]
        if not wanted:
            return
        with telling(self._directory):
            if self.held:
                self._remove(wanted)
                return
            self._moving.mkdir()
            for name in wanted:
                (self._directory / name).rename(self._moving / name)
            self._moving.rename(self._whole)
            sync_directory(self._directory)

    def put_back(self, made: Iterable[str]) -> None:
        """Remove the new entries ``made``, and move the old ones back, if there are any."""
        with telling(self._directory):
            self._remove(made)
            if self.held:
                self._whole.rename(self._moving)
                self._move_back()

    def drop(self) -> None:
        """Remove the old content: the new one is complete."""
        shutil.rmtree(self._whole, ignore_errors=True)

    def _move_back(self) -> None:
        for child in sorted(self._moving.iterdir()):
            child.rename(self._directory / child.name)
        self._moving.rmdir()
        sync_directory(self._directory)

    def _remove(self, names: Iterable[str]) -> None:
        for name in names:
            path = self._directory / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


def aside_of(directory: Path) -> list[Path]:
    """The places where old content of a directory may lie."""
    return [directory / REPLACED, directory / REPLACING]
