"""``rstar2 verify --self-test``: golds that can't serve as golds."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from rstar2cli.cli.output import emit
from rstar2cli.cli.progress import reporter
from rstar2cli.cli.say import say
from rstar2cli.core.errors import CheckFailed
from rstar2cli.core.progress import Progress, ProgressFn
from rstar2cli.grading.config import VerifyConfig

if TYPE_CHECKING:
    from rstar2cli.curation.sources.rows import Row
    from rstar2cli.grading.grade import Grader
    from rstar2cli.records import Problem
    from rstar2cli.shards.rejects import Reject


def self_test(
    inputs: list[str],
    config: VerifyConfig,
    column: str | None,
    *,
    pairs: int,
    seed: int,
    limit: int | None,
    quiet: bool,
    format: str,
) -> None:
    """Test the golds of every file (in ``column``; null: as curation finds them) and list what is wrong with them.

    Raises ``CheckFailed`` if there are faults.
    """
    from rstar2cli.grading.grade import Grader

    progress = reporter(quiet=quiet)
    faults = 0
    rows: list[dict[str, Any]] = []
    with Grader(policy=config.policy) as grader:
        grader.start()
        for name in inputs:
            problems, refused = _problems(name, column, limit)
            found = [_row(name, f"{reject.file}:{reject.line}", reject.reason, None) for reject in refused]
            found += _faults(name, problems, grader, progress)
            accepted = _pairs(name, problems, grader, progress, pairs=pairs, seed=seed)
            if not quiet:
                golds = len(problems) + len(refused)
                say(f"{name}: {golds} golds, {len(found)} faulty; {len(accepted)} accepted pairs of {pairs}")
            faults += len(found)
            rows += found + accepted
    if rows:
        emit(rows, format)
    if faults:
        raise CheckFailed(
            f"{faults} faulty golds", hint="mend them or leave them out: --where in the stages that read them"
        )


def _faults(name: str, problems: list[Problem], grader: Grader, progress: ProgressFn) -> list[dict[str, Any]]:
    from rstar2cli.grading.selftest import faulty_golds

    def told(done: int) -> None:
        progress(Progress(task=f"golds of {name}", done=done, total=len(problems), unit="golds", info={}))

    found = faulty_golds(problems, grader, told)
    return [_row(name, fault.problem.id, fault.fault, fault.problem.answer) for fault in found]


def _pairs(
    name: str, problems: list[Problem], grader: Grader, progress: ProgressFn, *, pairs: int, seed: int
) -> list[dict[str, Any]]:
    from rstar2cli.grading.selftest import accepted_pairs

    def told(done: int) -> None:
        progress(Progress(task=f"pairs of {name}", done=done, total=pairs, unit="pairs", info={}))

    return [
        _row(name, pair.gold.id, "accepted_pair", pair.gold.answer, pair.answer)
        for pair in accepted_pairs(problems, grader, seed=seed, pairs=pairs, on_done=told)
    ]


def _row(file: str, id: str, fault: str, gold: str | None, other: Problem | None = None) -> dict[str, Any]:
    return {
        "file": file,
        "id": id,
        "fault": fault,
        "gold": gold,
        "other_id": None if other is None else other.id,
        "other_gold": None if other is None else other.answer,
    }


def _problems(name: str, column: str | None, limit: int | None) -> tuple[list[Problem], list[Reject]]:
    """Problems of a file, and its rows without a gold."""
    from rstar2cli.curation.config import FieldsConfig
    from rstar2cli.curation.mapping import PROMPT_COLUMNS, to_problem
    from rstar2cli.curation.sources.files import file_rows
    from rstar2cli.evals.benchmarks.load import is_benchmark, load_benchmark
    from rstar2cli.records.codec import RowError

    def with_prompt(row: Row) -> Row:
        """A gold is tested with or without its question."""
        return (
            row
            if any(name in row.values for name in PROMPT_COLUMNS)
            else replace(row, values={**row.values, "prompt": "?"})
        )

    refused: list[Reject] = []
    if is_benchmark(name):
        return list(islice(load_benchmark(name, refused.append), limit)), refused
    problems = []
    for row in islice(file_rows(name, refused.append), limit):
        try:
            problems.append(to_problem(with_prompt(row), FieldsConfig(answer=column), answer_kind="any"))
        except RowError as error:
            refused.append(row.rejected(str(error)))
    return problems, refused
