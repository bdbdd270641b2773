"""AIME 2024, both papers: 30 problems, answers from 0 to 999."""

from __future__ import annotations

from rstar2cli.evals.benchmarks.base import Benchmark, Row, column
from rstar2cli.records import Problem


def _problem(row: Row, number: int) -> Problem:
    return Problem(
        id=f"aime24/{row.get('id', number)}",
        source="aime24",
        prompt=column(row, "problem", "question"),
        answer=str(int(column(row, "answer"))),  # the papers print 25 as 025
        answer_kind="integer",
    )


BENCHMARK = Benchmark(name="aime24", hub="HuggingFaceH4/aime_2024", split="train", to_problem=_problem)
