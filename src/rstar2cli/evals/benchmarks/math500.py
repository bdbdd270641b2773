"""MATH-500: 500 problems of the MATH test set, answers of any form."""

from __future__ import annotations

from rstar2cli.evals.benchmarks.base import Benchmark, Row, answer_kind, column
from rstar2cli.records import Problem


def _problem(row: Row, number: int) -> Problem:
    gold = column(row, "answer")
    tags = [f"{name}:{row[name]}" for name in ("subject", "level") if name in row]
    return Problem(
        id=f"math500/{row.get('unique_id', number)}",
        source="math500",
        prompt=column(row, "problem"),
        answer=gold,
        answer_kind=answer_kind(gold),
        tags=tags,
    )


BENCHMARK = Benchmark(name="math500", hub="HuggingFaceH4/MATH-500", split="test", to_problem=_problem)
