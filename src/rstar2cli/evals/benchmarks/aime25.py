"""AIME 2025, both papers: 30 problems, answers from 0 to 999."""

from __future__ import annotations

from rstar2cli.evals.benchmarks.base import Benchmark, Row, bare_question, column, final_answer
from rstar2cli.records import Problem


def _problem(row: Row, number: int) -> Problem:
    gold = final_answer(column(row, "answer", "reference_solution"))
    return Problem(
        id=f"aime25/{row.get('problem_idx', row.get('idx', number))}",
        source="aime25",
        prompt=bare_question(column(row, "problem", "question", "prompt")),
        # A common copy has 336^\circ where the official answer is 336.
        answer=str(int(gold.removesuffix(r"^\circ"))),
        answer_kind="integer",
    )


BENCHMARK = Benchmark(name="aime25", hub="MathArena/aime_2025", split="train", to_problem=_problem)
