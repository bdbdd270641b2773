"""HMMT February 2025: 30 problems, answers of any form."""

from __future__ import annotations

from rstar2cli.evals.benchmarks.base import Benchmark, Row, answer_kind, bare_question, column, final_answer
from rstar2cli.records import Problem


def _problem(row: Row, number: int) -> Problem:
    gold = final_answer(column(row, "answer", "reference_solution"))
    return Problem(
        id=f"hmmt25/{row.get('problem_idx', row.get('idx', number))}",
        source="hmmt25",
        prompt=bare_question(column(row, "problem", "prompt")),
        answer=gold,
        answer_kind=answer_kind(gold),
    )


BENCHMARK = Benchmark(name="hmmt25", hub="MathArena/hmmt_feb_2025", split="train", to_problem=_problem)
