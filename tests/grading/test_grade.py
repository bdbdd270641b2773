from __future__ import annotations

import pytest

from rstar2cli.grading.grade import grade, reward
from rstar2cli.records import Finish


@pytest.mark.parametrize(
    "text, finish, verdict, reason, points",
    [
        (r"</reason><answer>\boxed{4}</answer>", "stop", "correct", None, 1.0),
        (r"<answer>\boxed{4}</answer> and on and on", "length", "correct", None, 1.0),
        (r"<answer>\boxed{5}</answer>", "stop", "wrong", "different", 0.0),
        (r"<answer>\boxed{4", "length", "wrong", "cut_off", 0.0),
        (r"thinking", "tool_overflow", "wrong", "cut_off", 0.0),
        (r"<answer>4</answer>", "stop", "wrong", "no_answer", 0.0),
        (r"", "turn_limit", "wrong", "no_answer", 0.0),
        (r"<answer>\boxed{4}</answer>", "lost", "undecided", "lost", None),
    ],
)
def test_grades(text: str, finish: Finish, verdict: str, reason: str | None, points: float | None) -> None:
    result = grade(text, "4", "integer", finish=finish)
    assert (result.verdict, result.reason, reward(result)) == (verdict, reason, points)


def test_an_unreadable_gold_is_never_the_models_fault() -> None:
    for text in (r"<answer>\boxed{4}</answer>", "no answer at all"):
        result = grade(text, "see figure", "integer", finish="stop")
        assert (result.verdict, result.reason, reward(result)) == ("undecided", "gold_unparseable", None)
