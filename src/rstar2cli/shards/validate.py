"""Every fault of an input: bad rows, damaged files, manifests that promise something else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rstar2cli.core import drain
from rstar2cli.core.errors import DataError
from rstar2cli.core.progress import Progress, ProgressFn, silent
from rstar2cli.records import Record
from rstar2cli.shards.digest import RowDigest
from rstar2cli.shards.kinds import detect_sources, strangers
from rstar2cli.shards.manifest import MANIFEST, Manifest, read_manifest
from rstar2cli.shards.owned import is_shard_directory
from rstar2cli.shards.reader import read_sources
from rstar2cli.shards.rejects import Reject
from rstar2cli.shards.resolve import Source, resolve

_REPORT_ROWS = 10_000


@dataclass(kw_only=True)
class Report:
    """What :func:`validate` found."""

    record: str
    """Kind of the records; empty if no row says a known one."""
    files: int = 0
    """Files read."""
    rows: int = 0
    """Good rows."""
    faults: int = 0
    """Bad rows and damaged files."""
    unknown: dict[str, int] = field(default_factory=dict)
    """Unknown top-level fields (kept in `extra`) and in how many files they occur."""
    verified: int = 0
    """Shard directories whose digest agrees with their manifest."""


def validate(
    inputs: Sequence[str],
    on_fault: Callable[[Reject], None],
    *,
    cls: type[Record] | None = None,
    strict: bool = False,
    progress: ProgressFn = silent,
) -> Report:
    """Read everything behind the inputs and report each fault; ``line`` 0 stands for the file as a whole.

    ``cls``: kind that the rows must have (default: what the first file says; if none does, every row is a fault).
    Raises :class:`InputMissing` for inputs that are not there or unfinished.
    """
    sources = resolve(inputs)
    kind = cls or _kind_said(sources)
    report = Report(record=kind.kind() if kind else "")

    def fault(reject: Reject) -> None:
        report.faults += 1
        on_fault(reject)

    def unknown(_: str, name: str) -> None:
        report.unknown[name] = report.unknown.get(name, 0) + 1

    checks = _Manifests()
    for source in sources:
        drain.check(f"{report.files} of {len(sources)} files checked")
        report.files += 1
        digest = checks.digest(source)
        try:
            if kind is None:
                for stranger in strangers(source):
                    fault(stranger)
                continue
            for record in read_sources(
                [source], kind, strict=strict, on_reject=fault, on_unknown=unknown, empty_ok=True
            ):
                report.rows += 1
                digest.add(record)
                if report.rows % _REPORT_ROWS == 0:
                    progress(Progress(task="validate", done=report.rows))
        except DataError as error:
            message = error.message.removeprefix(f"{source.path}: ")
            fault(Reject(file=str(source.path), line=0, reason=message))
            checks.leave_out(source)
    for reject in checks.disagreements(report):
        fault(reject)
    progress(Progress(task="validate", done=report.rows, total=report.rows))
    return report


def companions(name: str) -> list[str]:
    """What a run or an evaluation keeps as shards beside what it stands for when it is read."""
    path = Path(name)
    if (path / "run.json").exists():
        names = ["rollouts", "selections"]
    elif is_shard_directory(path):
        names = ["trajectories"]
    else:
        return []
    return [str(path / name) for name in names if (path / name).is_dir() and any((path / name).iterdir())]


def _kind_said(sources: Sequence[Source]) -> type[Record] | None:
    try:
        return detect_sources(sources)
    except DataError:
        return None


class _Manifests:
    """One running digest per shard directory, compared with its manifest at the end."""

    def __init__(self) -> None:
        self._seen: dict[Path, tuple[Manifest, RowDigest, set[str]]] = {}
        self._unread: set[Path] = set()

    def digest(self, source: Source) -> RowDigest:
        """The digest that the rows of a file count into."""
        directory = source.path.parent
        manifest = None if source.stdin or source.rows is None else read_manifest(directory)
        if manifest is None:
            return RowDigest()
        entry = self._seen.setdefault(directory, (manifest, RowDigest(), set()))
        entry[2].add(source.path.name)
        return entry[1]

    def leave_out(self, source: Source) -> None:
        """What could not be read through says nothing about its manifest."""
        self._unread.add(source.path.parent)

    def disagreements(self, report: Report) -> list[Reject]:
        """A fault for each manifest that the data disagree with; counts the others as verified."""
        found = []
        for directory, (manifest, digest, names) in self._seen.items():
            if names != {part.name for part in manifest.parts}:
                continue  # only some of the parts were asked for
            if directory in self._unread:
                continue
            if (manifest.rows, manifest.digest) == (digest.rows, digest.hexdigest()):
                report.verified += 1
                continue
            reason = (
                f"promises {manifest.rows} rows with digest {manifest.digest[:12]}…, "
                f"found {digest.rows} with {digest.hexdigest()[:12]}…"
            )
            found.append(Reject(file=str(directory / MANIFEST), line=0, reason=reason))
        return found
