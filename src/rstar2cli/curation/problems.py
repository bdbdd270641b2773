"""Problems from every kind of input: read, mapped, split, filtered, without duplicates."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from rstar2cli.core import drain
from rstar2cli.core.errors import InputMissing
from rstar2cli.curation.config import CurateConfig
from rstar2cli.curation.mapping import source_names, to_problem
from rstar2cli.curation.sources import files, hub, synth
from rstar2cli.curation.sources.rows import Row
from rstar2cli.curation.synth.generate import canonical
from rstar2cli.grading.config import GradingConfig
from rstar2cli.grading.grade import shared_grader
from rstar2cli.grading.selftest import gold_fault
from rstar2cli.records import Problem
from rstar2cli.records.codec import RowError
from rstar2cli.shards.rejects import Reject

OnReject = Callable[[Reject], None]
_WHERE_ROWS = 32
_SCANNED_FOR_WHERE = 100


def read_problems(
    inputs: Sequence[str],
    config: CurateConfig,
    *,
    seed: int,
    limit: int | None,
    on_reject: OnReject,
    where: str | None = None,
    strict: bool = False,
) -> Iterator[Problem]:
    """At most ``limit`` problems that pass ``where`` and the split, in input order.

    ``synth:`` makes as many as the limit asks for (else ``config.count``); with ``where`` it
    looks at up to a hundred times that. Rows that are no problem with a verifiable answer go to
    ``on_reject``. Raises ``InputMissing``, ``DataError`` or ``UsageError`` for inputs that can't be read,
    and at the end ``InputMissing`` if there was no row in any of them; ``Stopped`` between rows if asked to.
    """
    reader = _Reader(config, seed=seed, limit=limit, where=where, strict=strict, on_reject=on_reject)
    problems = reader.read_all(inputs)
    if where is not None:
        problems = _passing(problems, where)
    return islice(problems, limit)


def normalized(prompt: str) -> str:
    """A prompt with case and spacing taken out, for finding duplicates."""
    return " ".join(prompt.casefold().split())


def split_side(problem: Problem) -> str:
    """`train` or `heldout`: as the generator says, else by the normalized prompt; a fifth is held out."""
    side = problem.extra.get("split")
    if side in ("train", "heldout"):
        return str(side)
    digest = hashlib.blake2b(normalized(problem.prompt).encode(), digest_size=8, person=b"rstar2-split").digest()
    return "heldout" if int.from_bytes(digest, "big") % 5 == 0 else "train"


class _Reader:
    """Reads one input after another; remembers what was seen in all of them."""

    def __init__(
        self,
        config: CurateConfig,
        *,
        seed: int,
        limit: int | None,
        where: str | None,
        strict: bool,
        on_reject: OnReject,
    ) -> None:
        self._config = config
        self._seed = seed
        self._grader = shared_grader(GradingConfig())
        count = config.count if limit is None else limit
        self._synth_count = count if where is None else _SCANNED_FOR_WHERE * count
        self._strict = strict
        self._on_reject = on_reject
        self._seen: dict[str, str] = {}
        self._rows = 0
        self._ids: dict[str, str] = {}
        self._sources: dict[str, str] = {}

    def read_all(self, names: Sequence[str]) -> Iterator[Problem]:
        """The problems of all inputs. Raises ``InputMissing`` at the end if there was no row at all."""
        for name in names:
            yield from self._read(name)
        if not self._rows:
            raise InputMissing(
                f"no rows in {', '.join(names)}", hint="the input is empty; check what should have written it"
            )

    def _read(self, name: str) -> Iterator[Problem]:
        if name.startswith(synth.PREFIX):
            for generated in islice(self._generated(name), self._synth_count):
                self._count_row()
                yield generated
            return
        rows = hub.rows(name) if name.startswith(hub.PREFIX) else files.file_rows(name, self._refuse_line)
        for row in rows:
            self._count_row()
            problem = self._mapped(row)
            if problem is not None:
                yield problem

    def _refuse_line(self, reject: Reject) -> None:
        """A line that is no row, but was there."""
        self._count_row()
        self._on_reject(reject)

    def _count_row(self) -> None:
        """Count a row, and heed a stop here too: it may be long until one of them becomes a problem."""
        self._rows += 1
        drain.check(f"{self._rows} input rows read")

    def _generated(self, name: str) -> Iterator[Problem]:
        config = self._config
        for problem in synth.synth_problems(name, families=config.families, seed=self._seed, split=config.split):
            key = _identity(problem)
            if key not in self._seen:
                self._seen[key] = self._ids[problem.id] = problem.id
                yield problem

    def _mapped(self, row: Row) -> Problem | None:
        config = self._config
        try:
            problem = to_problem(
                row,
                config.fields,
                answer_kind=config.answer_kind,
                strict=self._strict,
                source=self._source(row.file),
            )
        except RowError as error:
            self._on_reject(row.rejected(str(error)))
            return None
        if config.split not in ("all", split_side(problem)):
            return None
        if config.golds == "graded":
            fault = gold_fault(problem, self._grader)
            if fault is not None:
                self._on_reject(row.rejected(f"the gold can't be graded ({fault}): {problem.answer[:60]!r}"))
                return None
        place = f"{row.file}:{row.line}"
        if config.duplicates == "reject":
            key = _identity(problem)
            if key in self._seen:
                self._on_reject(row.rejected(f"the same problem as {self._seen[key]}"))
                return None
            self._seen[key] = place
        # An id names one problem: rollouts refuse two, and a resume would take the second for done.
        if problem.id in self._ids:
            self._on_reject(row.rejected(f"the id {problem.id!r} is that of {self._ids[problem.id]} too"))
            return None
        self._ids[problem.id] = place
        return problem

    def _source(self, file: str) -> str:
        """The shortest name of a file's source that no earlier file has."""
        for name in source_names(file):
            if self._sources.setdefault(name, file) == file:
                return name
        return file


def _identity(problem: Problem) -> str:
    """What two phrasings of one generated problem share; else the normalized prompt."""
    family, params = problem.extra.get("family"), problem.extra.get("params")
    if isinstance(family, str) and isinstance(params, dict):
        return f"{family}\0{canonical(params)}"
    return normalized(problem.prompt)


def _passing(problems: Iterator[Problem], expression: str) -> Iterator[Problem]:
    from rstar2cli.shards.where import Where  # here: DuckDB is imported only when it is needed

    where = Where(expression, Problem)
    while batch := list(islice(problems, _WHERE_ROWS)):
        yield from where.records(batch)
