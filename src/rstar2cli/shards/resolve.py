"""Names of inputs → files to read: files, globs, shard directories, run directories, ``-``."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from rstar2cli.core.errors import DataError, InputMissing, UsageError
from rstar2cli.core.reading import reading
from rstar2cli.shards.aside import aside_of
from rstar2cli.shards.lines import PARQUET_MAGIC
from rstar2cli.shards.manifest import CONFIG, JOURNAL, MANIFEST, REJECTS, Manifest, read_manifest
from rstar2cli.shards.owned import begun_by_stage

STDIN = Path("-")
ENDINGS = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet")
"""Files that a plain directory of data is searched for."""


@dataclass(frozen=True)
class Source:
    """One file to read."""

    path: Path
    """The file; ``-`` for standard input."""
    parquet: bool = False
    """Whether it is Parquet (else JSONL, perhaps compressed)."""
    rows: int | None = None
    """Rows that its manifest promises; null without one."""

    @property
    def stdin(self) -> bool:
        """Whether this is standard input."""
        return self.path == STDIN


def resolve(inputs: Sequence[str]) -> list[Source]:
    """All files behind the inputs, in order.

    Raises :class:`InputMissing` for what does not exist, can't be read, is empty or was never finished; a directory
    of shard directories is unfinished if one of them is.
    """
    if list(inputs).count("-") > 1:
        raise InputMissing("-: standard input can be read only once")
    with reading("input"):  # a directory on the way that may not be searched, a name that is too long
        return [source for name in inputs for source in _one(name)]


def _one(name: str) -> list[Source]:
    if name == "-":
        return [Source(STDIN)]
    path = Path(name)
    if path.is_dir():
        return _directory(path)
    if path.exists():
        return [_file(path)]
    if glob.has_magic(name):
        matches = glob.glob(name, recursive=True)  # noqa: PTH207 - patterns may be absolute
        found = sorted(item for item in matches if not is_bookkeeping(Path(item).name))
        if found:
            return [source for item in found for source in _one(item)]
        raise InputMissing(f"{name}: no file matches")
    raise InputMissing(f"{name}: no such file or directory")


def _file(path: Path, rows: int | None = None) -> Source:
    if path.name.endswith(".parquet"):
        return Source(path, parquet=True, rows=rows)
    try:
        with path.open("rb") as file:
            return Source(path, parquet=file.read(4) == PARQUET_MAGIC, rows=rows)
    except OSError as error:
        raise InputMissing(f"{path}: can't read: {error.strerror}") from error


def _directory(path: Path) -> list[Source]:
    manifest = read_manifest(path)
    if manifest is not None:
        return _parts(path, manifest)
    if (path / "run.json").exists():
        return _one(str(path / run_default(path)))
    if unfinished(path):
        raise _unfinished(path)
    children = [child for child in sorted(path.iterdir()) if child.is_dir()]
    complete = [child for child in children if read_manifest(child) is not None]
    for child in children:
        # Less data than the name stands for must not pass for all of it.
        if child not in complete and unfinished(child):
            raise _unfinished(child)
    if complete:
        _refuse_mixture(path, complete)
        return [source for child in complete for source in _directory(child)]
    files = [child for child in sorted(path.iterdir()) if _is_data(child.name)]
    if not files:
        raise InputMissing(
            f"{path}: no manifest.json and no data files in it",
            hint=f"a directory of {', '.join(ENDINGS)} files can be read, as can what a stage wrote",
        )
    return [_file(child) for child in files]


def _refuse_mixture(path: Path, children: Sequence[Path]) -> None:
    """A name that stands for several kinds of records stands for none."""
    kinds: dict[str, list[str]] = {}
    for child in children:
        if (manifest := read_manifest(child)) is not None:
            kinds.setdefault(manifest.record.partition("/")[0], []).append(child.name)
    if len(kinds) > 1:
        held = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in kinds.items())
        raise UsageError(f"{path}: holds several kinds of records ({held})", hint=f"name one of them: {children[0]}")


def is_bookkeeping(name: str) -> bool:
    """Whether a file name is one that writers give to what lies beside the data: no pattern means it."""
    return name in (MANIFEST, CONFIG, REJECTS) or name.endswith((f".{CONFIG}", f".{REJECTS}"))


def _is_data(name: str) -> bool:
    return name.endswith(ENDINGS) and not name.startswith(".") and not is_bookkeeping(name)


def unfinished(path: Path) -> bool:
    """Whether a directory without a manifest is a shard directory whose writer has not finished."""
    if (path / "run.json").exists():
        return False
    begun = (path / JOURNAL).exists() or any(path.glob("part-*.parquet")) or begun_by_stage(path)
    return begun or any(place.is_dir() for place in aside_of(path))


def _unfinished(path: Path) -> InputMissing:
    parts = f", or read what is there: '{path}/part-*.parquet'" if any(path.glob("part-*.parquet")) else ""
    old = next((f"; what it is to replace is in {place}" for place in aside_of(path) if place.is_dir()), "")
    return InputMissing(
        f"{path}: no manifest.json: its writer has not finished", hint=f"finish it with --resume{parts}{old}"
    )


def _parts(path: Path, manifest: Manifest) -> list[Source]:
    missing = [part.name for part in manifest.parts if not (path / part.name).exists()]
    if missing:
        raise InputMissing(
            f"{path}: {missing[0]} is in manifest.json but not there" + _more(len(missing) - 1),
            hint="copy the directory again, or make it again with --overwrite",
        )
    return [_file(path / part.name, part.rows) for part in manifest.parts]


def _more(count: int) -> str:
    return f" ({count} more parts missing)" if count > 0 else ""


def run_default(path: Path) -> str:
    """The file or directory that a run directory stands for when it is read."""
    try:
        marker = msgspec.json.decode((path / "run.json").read_bytes())
        return str(marker["default"])
    except (msgspec.DecodeError, KeyError, TypeError):
        raise DataError(f"{path / 'run.json'}: not the marker of a run directory") from None
