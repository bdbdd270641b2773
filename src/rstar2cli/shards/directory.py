"""A shard directory being written: parts, journal, and the manifest last.

Order of events for a part: written under a hidden name, checked, entered in the
journal, renamed. After a crash a part counts only if the journal has an entry whose
rows and digest are those in the file's footer; anything else is removed.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, TypeVar

from rstar2cli.core.errors import DataError, InputMissing, OutputConflict
from rstar2cli.records.base import Record
from rstar2cli.shards import manifest as files
from rstar2cli.shards import parquet
from rstar2cli.shards.aside import Aside
from rstar2cli.shards.atomic import is_temp, output_error, telling, write_bytes
from rstar2cli.shards.digest import combine
from rstar2cli.shards.lineage import Lineage
from rstar2cli.shards.lock import LOCK, OutputLock, is_leftover
from rstar2cli.shards.manifest import Journal, Manifest, Part
from rstar2cli.shards.owned import is_part, is_shard_directory, owned
from rstar2cli.shards.part import PartFile
from rstar2cli.shards.reader import read_records
from rstar2cli.shards.writer import Writer, check_resumed

R = TypeVar("R", bound=Record)

_OF_BEGINNING = {files.CONFIG, files.JOURNAL, files.REJECTS}
"""Own entries that hold no record."""


class DirectoryWriter(Writer[R]):
    """See :func:`rstar2cli.shards.writer.open_writer`."""

    def __init__(
        self,
        path: Path,
        cls: type[R],
        lineage: Lineage,
        config: dict[str, Any],
        resume: bool,
        overwrite: bool,
        rows_per_part: int,
        rejects: Path | None,
    ) -> None:
        super().__init__(cls, rejects or path / files.REJECTS)
        self._path = path
        self._lineage = lineage
        self._rows_per_part = rows_per_part
        self._parts: list[Part] = []
        self._loaded: list[Part] = []
        self._replaced: Part | None = None
        self._part: PartFile[R] | None = None
        self._config = config
        self._overwrite = overwrite
        with telling(path):
            _check_free(path, resume, overwrite)
            self.replaces = overwrite and path.exists() and _holds_something(path)
        self._resume = resume
        self._aside = Aside(path)
        self._made = not path.exists()
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise output_error(path, error) from error
        self._lock = OutputLock(path / LOCK, str(path))
        try:
            self._check_ours()
            self._aside.mend()
            if self._aside.held and (path / files.MANIFEST).exists():
                self._aside.drop()  # killed just after it was complete
            if resume:
                self._load()
        except BaseException:
            self._release()
            raise

    def write(self, record: R) -> None:
        """Add a record; ends the part when it is full."""
        if self.complete:
            raise OutputConflict(f"{self._path}: complete, takes no more records", hint="begin anew with --overwrite")
        self.begin()
        if self._part is None:
            self._part = self._new_part()
        self._part.write(record)
        self.rows += 1
        if self._part.rows >= self._rows_per_part:
            self._end_part(still_open=False)

    def end_part(self) -> None:
        """Make all records so far durable as a part, if there are any new ones."""
        self._end_part(still_open=False)

    def existing(self, field: str) -> set[Any]:
        """Values of a column in the parts that ``rows_done`` counts."""
        values: set[Any] = set()
        for part in self._loaded:
            for batch in parquet.batches(self._path / part.name, [field]):
                values.update(batch.column(0).to_pylist())
        return values

    def _begin(self) -> None:
        if self._overwrite:
            self._aside.take(owned(self._path))
            self._remove(keep=set())
        write_bytes(self._path / files.CONFIG, files.encode(self._config))
        if not self._loaded:
            self._write_journal([])  # from here on it is known as ours

    def _load(self) -> None:
        """Take over what an earlier writer finished."""
        check_resumed(self._path, files.read_config(self._path), self._config)
        done = files.read_manifest(self._path)
        if done is not None:
            self._check_kind(done.record)
            self._parts, self.complete = done.parts, True
        elif (journal := files.read_journal(self._path)) is not None:
            self._check_kind(journal.record)
            self._parts = self._sound(journal.parts)
        self._loaded = list(self._parts)
        self.rows = self.rows_done = sum(part.rows for part in self._parts)
        if not self.complete:
            self._remove(keep={part.name for part in self._parts})
            self._reopen_last()

    def _check_ours(self) -> None:
        """Only what a shard writer made is gone on with or replaced. Asked under the lock: a writer at its very
        beginning has no mark yet."""
        if _holds_something(self._path) and not is_shard_directory(self._path):
            what = "gone on with" if self._resume else "replaced"
            raise OutputConflict(
                f"{self._path}: not a shard directory, so it is not {what}", hint="choose another OUT, or empty it"
            )

    def _check_kind(self, kind: str) -> None:
        if kind != self.cls.kind():
            raise OutputConflict(
                f"{self._path}: holds {kind} records, not {self.cls.kind()}", hint="begin anew with --overwrite"
            )

    def _sound(self, entries: list[Part]) -> list[Part]:
        """The unbroken run of parts whose files are what the journal says."""
        sound: list[Part] = []
        for entry in entries:
            if entry.name != f"part-{len(sound):05d}.parquet" or not self._matches(entry):
                continue
            sound.append(entry)
        return sound

    def _matches(self, entry: Part) -> bool:
        path = self._path / entry.name
        try:
            footer = parquet.footer(path)
            return footer.get(parquet.DIGEST_KEY) == entry.digest.encode() and parquet.row_count(path) == entry.rows
        except (DataError, InputMissing):
            return False  # damaged or missing: its rows are made again

    def _reopen_last(self) -> None:
        """Go on filling a part that the earlier writer ended only because it had to stop."""
        if not self._parts or not self._parts[-1].open:
            return
        last = self._parts.pop()
        self.rows -= last.rows
        self._part = self._new_part()
        for record in read_records([str(self._path / last.name)], self.cls):
            self._part.write(record)
            self.rows += 1
        self._replaced = last

    def _new_part(self) -> PartFile[R]:
        name = f"part-{len(self._parts):05d}.parquet"
        return PartFile(self._path / name, self.cls, self._lineage, self.rows)

    def _end_part(self, still_open: bool) -> None:
        part = self._part
        if part is None or part.rows == 0:
            return
        name = f"part-{len(self._parts):05d}.parquet"
        entry = Part(name=name, rows=part.rows, digest=part.finish(), open=still_open)
        # An entry of the part that this one replaces stays until the rename has happened.
        entries = [*self._parts, *([self._replaced] if self._replaced else []), entry]
        self._write_journal(entries)
        part.publish()
        self._part, self._replaced = None, None
        self._parts.append(entry)

    def _write_journal(self, parts: list[Part]) -> None:
        write_bytes(self._path / files.JOURNAL, files.encode(Journal(record=self.cls.kind(), parts=parts)))

    def _complete(self) -> None:
        if self.complete:
            return
        self._end_part(still_open=False)
        for part in self._parts:
            part.open = False
        document = Manifest(
            record=self.cls.kind(),
            rows=self.rows,
            digest=combine([part.digest for part in self._parts]),
            rejects=self.n_rejects,
            parts=self._parts,
            lineage=self._lineage,
        )
        write_bytes(self._path / files.MANIFEST, files.encode(document))
        (self._path / files.JOURNAL).unlink(missing_ok=True)
        self._aside.drop()

    def _abandon(self, keep: bool) -> bool:
        try:
            if keep:
                self._end_part(still_open=True)
        finally:
            if self._part is not None:
                self._part.discard()
        if not (self._begun or self._resume):
            return False
        if set(owned(self._path)) - _OF_BEGINNING:
            return True
        if self._begun:
            # Nothing came of it: the corrected command must not meet an OUT that exists, and the old one is the data.
            self._close_rejects()
            self._aside.put_back(_OF_BEGINNING)
        return False

    def _tell_kept(self) -> str:
        if self.kept:
            return f"{self.rows} {self.cls.record_name} records are saved in {self._path}"
        return f"nothing is saved in {self._path}" + (", which is as it was" if self.replaces else "")

    def _release(self) -> None:
        self._lock.release()
        if self._made:
            with contextlib.suppress(OSError):  # it holds something
                self._path.rmdir()

    def _remove(self, keep: set[str]) -> None:
        """Remove an earlier writer's files; nothing that is not one of them."""
        if not keep:
            for name in (files.MANIFEST, files.JOURNAL, files.CONFIG, files.REJECTS):
                (self._path / name).unlink(missing_ok=True)
        for item in self._path.iterdir():
            if (is_part(item.name) and item.name not in keep) or is_temp(item.name):
                item.unlink(missing_ok=True)


def _holds_something(path: Path) -> bool:
    return any(not is_leftover(item.name) for item in path.iterdir())


def _check_free(path: Path, resume: bool, overwrite: bool) -> None:
    """Raise :class:`OutputConflict` for a place that may not be written to."""
    if not path.is_dir():
        if path.exists() or path.is_symlink():
            raise OutputConflict(
                f"{path}: exists and is no directory, so it is not replaced", hint="choose another OUT"
            )
        return
    if _holds_something(path) and not (resume or overwrite):
        if not is_shard_directory(path):
            raise OutputConflict(
                f"{path}: exists, and is not a shard directory", hint="choose another OUT, or empty it"
            )
        raise OutputConflict(f"{path}: exists", hint="continue it with --resume, or replace it with --overwrite")
