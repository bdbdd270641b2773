"""GSM8K, test set: 1319 word problems, integer answers after `####`."""

from __future__ import annotations

from rstar2cli.evals.benchmarks.base import Benchmark, Row, answer_kind, column, final_answer
from rstar2cli.records import Problem


def _problem(row: Row, number: int) -> Problem:
    worked = column(row, "answer")
    if "####" not in worked:
        raise ValueError("the column answer has no final answer after ####")
    gold = final_answer(worked).replace(",", "")
    return Problem(
        id=f"gsm8k/{number}",
        source="gsm8k",
        prompt=column(row, "question"),
        answer=gold,
        answer_kind=answer_kind(gold),
    )


BENCHMARK = Benchmark(name="gsm8k", hub="openai/gsm8k@main", split="test", to_problem=_problem)
