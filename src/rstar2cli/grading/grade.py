"""The only way to a reward: a last turn's text and the gold → verdict, reason, reward."""

from __future__ import annotations

from dataclasses import dataclass

from rstar2cli.answers.equivalence import Reason, compare
from rstar2cli.answers.extract import extract_answer
from rstar2cli.records import AnswerKind, Finish, Verdict

_CUT: tuple[Finish, ...] = ("length", "tool_overflow")
"""Ends at which the model was stopped in the middle of its work."""


@dataclass(frozen=True, kw_only=True)
class Grade:
    """Verdict on one answer."""

    answer: str | None
    """The extracted answer; null if there is none."""
    verdict: Verdict
    """`correct`, `wrong` (the model's doing) or `undecided` (ours)."""
    reason: Reason | None
    """Why it is wrong or undecided; null if correct."""


def grade(text: str, gold: str, answer_kind: AnswerKind, *, finish: Finish) -> Grade:
    """Grade the model's own text of the last turn (mask = 1 tokens, decoded).

    An answer that is missing, cut off or unreadable is wrong; only a gold that can't be read or
    a lost trajectory is undecided. Never raises for what the model wrote.
    """
    answer = extract_answer(text)
    if finish == "lost":
        return Grade(answer=answer, verdict="undecided", reason="lost")
    if answer is None:
        readable = compare("", gold, answer_kind).verdict != "undecided"
        if not readable:
            return Grade(answer=None, verdict="undecided", reason="gold_unparseable")
        return Grade(answer=None, verdict="wrong", reason="cut_off" if finish in _CUT else "no_answer")
    result = compare(answer, gold, answer_kind)
    return Grade(answer=answer, verdict=result.verdict, reason=result.reason)


def reward(grade: Grade) -> float | None:
    """1 for correct, 0 for wrong, null for undecided (the trajectory leaves its group)."""
    return {"correct": 1.0, "wrong": 0.0, "undecided": None}[grade.verdict]
