"""Where records go: :func:`open_writer` gives the writer for a directory, a file or standard output."""

from __future__ import annotations

import abc
from collections.abc import Collection, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Generic, Self, TypeVar

from rstar2cli.core.errors import OutputConflict, Stopped, UsageError
from rstar2cli.records.base import Record
from rstar2cli.shards.atomic import output_error
from rstar2cli.shards.lineage import Lineage
from rstar2cli.shards.rejects import Reject, encode_reject

R = TypeVar("R", bound=Record)

ROWS_PER_PART = 16384
"""Default rows of a part."""
_SHOWN_DIGEST = 16


class Writer(abc.ABC, Generic[R]):
    """Takes records of one kind. Use it as a context manager.

    Leaving normally completes the output. Leaving by an exception never does: rows
    of finished parts stay for ``--resume``, and after :class:`Stopped` all rows do.
    Nothing that was there before is touched until :meth:`begin`, which the first record calls: so a
    command that fails earlier (no such model, no sandbox) leaves OUT as it found it. What ``overwrite``
    replaces is gone only when the new output is complete; if nothing of that is kept, it is back in its place.
    """

    rows_done: int = 0
    """Records in complete parts when the writer was opened (``resume``)."""
    complete: bool = False
    """Whether the output was complete already; nothing may be written then."""
    replaces: bool = False
    """Whether there is an old output that this one takes the place of (``overwrite``)."""
    kept: bool = False
    """After an exception: whether there is something to go on from."""

    def __init__(self, cls: type[R], rejects: Path | None) -> None:
        self.cls = cls
        self.rows = 0
        """Records in the output so far, those of earlier runs included."""
        self.n_rejects = 0
        """Rejects of this run."""
        self.rejects_path = rejects
        """File that they go to; null if they are only counted."""
        self._rejects: BinaryIO | None = None
        self._waiting: list[Reject] = []
        self._begun = False
        self._finished = False

    def begin(self) -> None:
        """Make the output this writer's: set aside what ``overwrite`` replaces, note the configuration."""
        if self._begun:
            return
        self._begun = True
        if not self.complete:
            self._begin()
        waiting, self._waiting = self._waiting, []
        for reject in waiting:
            self._keep(reject)

    @abc.abstractmethod
    def write(self, record: R) -> None:
        """Add a record."""

    @abc.abstractmethod
    def end_part(self) -> None:
        """Make all records so far durable, where the output has parts."""

    @abc.abstractmethod
    def existing(self, field: str) -> set[Any]:
        """Values of a top-level field in the records that ``rows_done`` counts."""

    def _begin(self) -> None:
        """What :meth:`begin` does to an output that is not complete."""

    @abc.abstractmethod
    def _complete(self) -> None:
        """Write what makes the output complete."""

    @abc.abstractmethod
    def _abandon(self, keep: bool) -> bool:
        """Leave without completing; with ``keep`` rows not yet in a part are saved first.

        Returns whether there is something to go on from.
        """

    @abc.abstractmethod
    def _tell_kept(self) -> str:
        """In words: what :meth:`_abandon` left."""

    def _release(self) -> None:
        """Give back locks and open files."""

    def reject(self, reject: Reject) -> None:
        """Keep a refused row; it is in the file from :meth:`begin` on."""
        self.n_rejects += 1
        if self._begun:
            self._keep(reject)
        else:
            self._waiting.append(reject)

    def _keep(self, reject: Reject) -> None:
        if self.rejects_path is None:
            return
        try:
            if self._rejects is None:
                # A resumed stage reads its input from the start, so it finds earlier rejects again.
                self._rejects = self.rejects_path.open("wb")
            self._rejects.write(encode_reject(reject))
            self._rejects.flush()
        except OSError as error:
            raise output_error(self.rejects_path, error) from error

    def close(self) -> None:
        """Complete the output and release it; a second call does nothing."""
        self._finish(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._finish(error)

    def _finish(self, error: BaseException | None) -> None:
        if self._finished:
            return
        self._finished = True
        try:
            if error is None:
                try:
                    self.begin()
                    self._complete()
                except BaseException:
                    self.kept = self._abandon(keep=False)
                    raise
            else:
                self.kept = self._abandon(keep=isinstance(error, Stopped))
                if isinstance(error, Stopped):
                    error.tell_kept(self._tell_kept())
        finally:
            self._close_rejects()
            self._release()

    def _close_rejects(self) -> None:
        if self._rejects is not None:
            self._rejects.close()


def open_writer(
    out: str,
    cls: type[R],
    *,
    lineage: Lineage,
    config: dict[str, Any],
    resume: bool = False,
    overwrite: bool = False,
    rows_per_part: int = ROWS_PER_PART,
    rejects: str | None = None,
) -> Writer[R]:
    """The writer for ``out``: a directory, a file (``.parquet``, ``.jsonl``, ``.jsonl.gz``, ``.jsonl.zst``) or ``-``.

    ``rejects``: file for refused rows (default: ``rejects.jsonl`` in a directory, ``OUT.rejects.jsonl``
    beside a file, none for ``-``). ``resume`` continues after the last complete part; a single
    file has no parts, so an unfinished one begins anew and a finished one is complete.
    Raises :class:`OutputConflict` if ``out`` exists (without either flag), is locked, can't be
    written, or was made with another configuration, model or input (``resume``): ``config`` and
    the digests in ``lineage`` are noted beside the output for that.
    """
    if resume and overwrite:
        raise UsageError("--resume and --overwrite exclude each other")
    if rows_per_part < 1:
        raise UsageError(f"rows_per_part {rows_per_part}: must be at least 1")
    reject_path = Path(rejects) if rejects else None
    config = {**config, **_digests(lineage)}
    if out == "-":
        from rstar2cli.shards.single import StreamWriter

        return StreamWriter(cls, reject_path)
    if is_file_name(out):
        from rstar2cli.shards.single import FileWriter

        return FileWriter(Path(out), cls, lineage, config, resume, overwrite, reject_path)
    from rstar2cli.shards.directory import DirectoryWriter

    return DirectoryWriter(Path(out), cls, lineage, config, resume, overwrite, rows_per_part, reject_path)


def _digests(lineage: Lineage) -> dict[str, Any]:
    """What the records depend on besides the configuration, short enough to be shown in a message."""
    model = {"model_digest": lineage.model} if lineage.model else {}
    inputs = {name: digest[:_SHOWN_DIGEST] for name, digest in lineage.inputs.items()}
    return {**model, **({"data": inputs} if inputs else {})}


def is_file_name(out: str) -> bool:
    """Whether an output name is that of a single file."""
    if out.endswith((".parquet", ".jsonl", ".jsonl.gz", ".jsonl.zst")):
        return True
    if out.endswith((".json", ".csv", ".gz", ".zst", ".arrow", ".tsv")):
        raise UsageError(f"{out}: no known ending", hint="a directory, .parquet, .jsonl, .jsonl.gz, .jsonl.zst, or -")
    return False


def check_resumed(out: Path, old: dict[str, Any] | None, new: dict[str, Any], *, free: Collection[str] = ()) -> None:
    """Raise :class:`OutputConflict` if an output was begun with another configuration, model or input.

    ``old`` is what was noted beside it; null if nothing was, which says nothing. ``free`` are (last parts of) keys
    that may differ.
    """
    changed = [] if old is None else config_differences(old, new)
    changed = [line for line in changed if line.partition(":")[0].rsplit(".", 1)[-1] not in free]
    if not changed:
        return
    what = " and another ".join(sorted({_what_changed(line) for line in changed}))
    raise OutputConflict(
        f"{out}: was begun with another {what}: {named(changed)}",
        hint="resume with what it was begun with, or begin anew with --overwrite",
    )


def _what_changed(difference: str) -> str:
    top = difference.partition(":")[0].partition(".")[0]
    return {"model": "model", "model_digest": "model", "inputs": "input", "data": "input"}.get(top, "configuration")


def config_differences(old: dict[str, Any], new: dict[str, Any], prefix: str = "") -> list[str]:
    """Dotted keys that differ between two configurations, as ``key: old → new``."""
    found = []
    for key in dict.fromkeys([*old, *new]):
        before, after = old.get(key), new.get(key)
        if isinstance(before, dict) and isinstance(after, dict):
            found += config_differences(before, after, f"{prefix}{key}.")
        elif before != after:
            found.append(f"{prefix}{key}: {before!r} → {after!r}")
    return found


def named(names: Sequence[str], most: int = 4) -> str:
    """A short list for a message."""
    more = len(names) - most
    return "; ".join(names[:most]) + (f"; {more} more" if more > 0 else "")
