"""Figures of graded answers."""

from __future__ import annotations

import pytest

from rstar2cli.records import Score
from rstar2cli.stats.scores import problem_means, summarize


def score(problem: str, sample: int, value: float | None, **detail: object) -> Score:
    verdict = "undecided" if value is None else "correct" if value else "wrong"
    return Score(
        benchmark="b", problem_id=problem, sample=sample, metric="correct", value=value, verdict=verdict,
        detail=detail,
    )  # fmt: skip


def by_problem(row: Score) -> str:
    return row.problem_id


def test_mean_over_samples_then_over_problems() -> None:
    rows = [score("a", 0, 1), score("a", 1, 0), score("b", 0, 1), score("b", 1, 1), score("b", 2, 1)]
    found = summarize(rows, by_problem)
    assert (found.problems, found.samples, found.pass_at_1) == (2, 5, 0.75)
    assert found.low <= 0.75 <= found.high
    assert found.k == 2 and found.pass_at_k == 1.0


def test_undecided_counts_as_not_correct_and_is_shown() -> None:
    found = summarize([score("a", 0, None), score("b", 0, 1)], by_problem)
    assert found.pass_at_1 == 0.5 and found.undecided == 1
    assert problem_means([score("a", 0, None)], by_problem) == {"a": 0.0}


def test_tool_errors_are_a_share_of_answered_calls() -> None:
    rows = [
        score("a", 0, 1, tool_calls=3, tool_errors=1, tokens=10, turns=2, finish="stop"),
        score("b", 0, 0, tool_calls=1, tool_errors=1, tokens=30, turns=4, finish="tool_overflow"),
    ]
    found = summarize(rows, by_problem)
    assert found.tool_error_share == 0.5 and found.mean_tokens == 20 and found.mean_turns == 3
    assert found.mean_tool_calls == 2 and found.truncated_share == 0.5


def test_figures_that_no_score_carries_are_null() -> None:
    found = summarize([score("a", 0, 1)], by_problem)
    assert found.tool_error_share is None and found.mean_tokens is None and found.truncated_share is None
    assert found.pass_at_k is None and found.k == 1


def test_without_scores() -> None:
    with pytest.raises(ValueError, match="no scores"):
        summarize([], by_problem)
