"""Whether an answer equals the gold, by normal form. Pure and quick; caps come first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from rstar2cli.answers import normalize
from rstar2cli.records import AnswerKind, Verdict

Reason = Literal["no_answer", "cut_off", "unparseable", "over_cap", "hedged", "different", "gold_unparseable", "lost"]

MAX_CHARS = 1024
"""Longest answer that is read; a longer one is wrong (`over_cap`)."""

_FORMS: dict[str, Callable[[str], str | None]] = {
    "integer": normalize.integer,
    "rational": normalize.rational,
    "choice": normalize.choice,
    "text": normalize.plain,
    "expression": normalize.expression,
}
_ONE_VALUE = ("integer", "rational", "choice")
"""Kinds whose gold is a single value, so that an answer of several is a hedge."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Result of comparing an answer with the gold."""

    verdict: Verdict
    """`undecided` only if the gold can't be read."""
    reason: Reason | None
    """Why it is wrong or undecided; null if correct."""


def compare(answer: str, gold: str, kind: AnswerKind) -> Comparison:
    """Compare an extracted answer with the gold answer of a problem."""
    form = _FORMS[kind]
    expected = form(gold) if len(gold) <= MAX_CHARS else None
    if expected is None:
        return Comparison(verdict="undecided", reason="gold_unparseable")
    if len(answer) > MAX_CHARS:
        return Comparison(verdict="wrong", reason="over_cap")
    given = form(answer)
    if given is None:
        return Comparison(verdict="wrong", reason="hedged" if _hedged(answer, kind) else "unparseable")
    if given != expected:
        return Comparison(verdict="wrong", reason="different")
    return Comparison(verdict="correct", reason=None)


def _hedged(answer: str, kind: AnswerKind) -> bool:
    """Whether it names several values where one is asked for."""
    if kind not in _ONE_VALUE:
        return False
    parts = normalize.candidates(answer)
    return len(parts) > 1 and all(_FORMS[kind](part) is not None for part in parts)
