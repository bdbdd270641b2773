"""Single files and standard output as outputs."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from rstar2cli.core.errors import OutputConflict
from rstar2cli.records.base import Record
from rstar2cli.records.codec import encode_line
from rstar2cli.shards.atomic import output_error, replacing, write_bytes
from rstar2cli.shards.lineage import Lineage
from rstar2cli.shards.lock import OutputLock
from rstar2cli.shards.manifest import CONFIG, REJECTS, encode, read_json
from rstar2cli.shards.reader import read_records
from rstar2cli.shards.writer import Writer, check_resumed

R = TypeVar("R", bound=Record)


class StreamWriter(Writer[R]):
    """JSONL on standard output, record by record."""

    def __init__(self, cls: type[R], rejects: Path | None) -> None:
        super().__init__(cls, rejects)
        self.begin()  # there is nothing to spare
        self._out = sys.stdout.buffer

    def write(self, record: R) -> None:
        """Write a line and flush it. Raises ``BrokenPipeError`` when the reader has gone."""
        self._out.write(encode_line(record))
        self._out.flush()
        self.rows += 1

    def end_part(self) -> None:
        """A stream has no parts."""

    def existing(self, field: str) -> set[Any]:
        """A stream holds nothing from before."""
        return set()

    def _complete(self) -> None:
        pass

    def _abandon(self, keep: bool) -> bool:
        return False

    def _tell_kept(self) -> str:
        return f"{self.rows} {self.cls.record_name} records went to standard output"


class FileWriter(Writer[R]):
    """One file, named when it is complete. See :func:`rstar2cli.shards.writer.open_writer`."""

    def __init__(
        self,
        path: Path,
        cls: type[R],
        lineage: Lineage,
        config: dict[str, Any],
        resume: bool,
        overwrite: bool,
        rejects: Path | None,
    ) -> None:
        super().__init__(cls, rejects or path.with_name(path.name + "." + REJECTS))
        self._path = path
        self._config = config
        self._config_path = path.with_name(path.name + "." + CONFIG)
        if path.is_dir():
            raise OutputConflict(
                f"{path}: a directory, so no file replaces it", hint="choose another OUT; its ending says it is a file"
            )
        self.replaces = overwrite and path.exists()
        if path.exists() and not (resume or overwrite):
            raise OutputConflict(f"{path}: exists", hint="keep it with --resume, or replace it with --overwrite")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise output_error(path, error) from error
        self._lock = OutputLock(path.with_name(f".{path.name}.lock"), str(path))
        self._open = ExitStack()
        try:
            if path.exists() and resume:
                self._check_noted()
                self.complete = True
                self.rows = self.rows_done = sum(1 for _ in read_records([str(path)], cls, empty_ok=True))
            else:
                self._sink = self._open.enter_context(_sink(path, cls, lineage))
        except BaseException:
            self._lock.release()
            raise

    def write(self, record: R) -> None:
        """Add a record."""
        if self.complete:
            raise OutputConflict(f"{self._path}: complete, takes no more records", hint="begin anew with --overwrite")
        self.begin()
        try:
            self._sink.write(record)
        except OSError as error:
            raise output_error(self._path, error) from error
        self.rows += 1

    def end_part(self) -> None:
        """A single file has no parts."""

    def existing(self, field: str) -> set[Any]:
        """Values of a field in a file that was complete already."""
        if not self.complete:
            return set()
        return {getattr(record, field) for record in read_records([str(self._path)], self.cls, empty_ok=True)}

    def _check_noted(self) -> None:
        noted = read_json(self._config_path)
        if noted is None:
            raise OutputConflict(
                f"{self._path}: {self._config_path.name} is not beside it: what it was made with is not known",
                hint="replace it with --overwrite, or write elsewhere",
            )
        check_resumed(self._path, noted, self._config)

    def _complete(self) -> None:
        if self.complete:
            return
        self._open.close()
        write_bytes(self._config_path, encode(self._config))

    def _abandon(self, keep: bool) -> bool:
        if not self.complete:
            failed = OutputConflict(f"{self._path}: not finished")
            self._open.__exit__(type(failed), failed, None)
        return False

    def _tell_kept(self) -> str:
        old = ", and is as it was" if self.replaces or self.complete else ""
        return f"nothing is saved: {self._path} is written whole or not at all{old}"

    def _release(self) -> None:
        self._lock.release()


class _JsonlSink:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, record: Record) -> None:
        self._file.write(encode_line(record))


@contextmanager
def _sink(path: Path, cls: type[Record], lineage: Lineage) -> Iterator[Any]:
    """What takes the records of a file; at the end the file gets its name, on an error it goes."""
    if path.name.endswith(".parquet"):
        from rstar2cli.shards.part import PartFile

        part = PartFile(path, cls, lineage, 0)
        try:
            yield part
            part.finish()
            part.publish()
        except BaseException:
            part.discard()
            raise
        return
    with replacing(path) as file:
        if path.name.endswith(".gz"):
            # No time in the header: the same records give the same bytes.
            with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
                yield _JsonlSink(cast(BinaryIO, packed))
        elif path.name.endswith(".zst"):
            import zstandard

            with zstandard.ZstdCompressor().stream_writer(file, closefd=False) as packed_zst:
                yield _JsonlSink(cast(BinaryIO, packed_zst))
        else:
            yield _JsonlSink(file)
