"""Whether an answer is the gold: caps, identity, kind, then value by value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rstar2cli.answers import kinds
from rstar2cli.answers.algebra import Algebra, NoAlgebra, Unreadable
from rstar2cli.answers.checker import Checker
from rstar2cli.answers.policy import DEFAULT, Policy
from rstar2cli.answers.read import read_clean
from rstar2cli.answers.spelling import clean, key
from rstar2cli.answers.values import Clock, Formula, Group, Number, Quantity, Value, Words
from rstar2cli.records import AnswerKind, Verdict

Reason = Literal[
    "no_answer",
    "cut_off",
    "unparseable",
    "over_cap",
    "hedged",
    "different",
    "gold_unparseable",
    "lost",
    "limit",
    "checker_lost",
]
MAX_CHARS = kinds.MAX_CHARS
"""Longest answer that is read; a longer one is wrong (`over_cap`)."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Result of comparing an answer with the gold."""

    verdict: Verdict
    """`undecided` only for a reason of ours."""
    reason: Reason | None
    """Why it is wrong or undecided; null if correct."""


def compare(
    answer: str,
    gold: str,
    kind: AnswerKind | None = None,
    *,
    policy: Policy = DEFAULT,
    algebra: Algebra | None = None,
    identity: bool = True,
) -> Comparison:
    """Compare an extracted answer with the gold answer of a problem.

    ``kind``: what the gold must be; null takes what it reads as. ``identity``: whether texts that are
    the same after cleaning are correct unread. Raises ``NeedsAlgebra`` if there is none and reading
    alone does not settle it.
    """
    if len(gold) > MAX_CHARS:
        if identity and answer.strip() == gold.strip():
            return Comparison(verdict="correct", reason=None)
        return _undecided("gold_unparseable")
    if len(answer) > MAX_CHARS:
        return _undecided("gold_unparseable") if not kinds.fits(gold, kind) else _wrong("over_cap")
    if not kinds.fits(gold, kind):
        return _undecided("gold_unparseable")
    cleaned_gold, cleaned = clean(gold), clean(answer)
    if not cleaned:
        return _wrong("no_answer") if not answer.strip() else _wrong("unparseable")
    if identity and key(cleaned_gold) == key(cleaned):
        return Comparison(verdict="correct", reason=None)
    if kinds.is_choice(cleaned_gold, kind):
        letter = kinds.choice(cleaned)
        if letter is not None and letter == kinds.choice(cleaned_gold):
            return Comparison(verdict="correct", reason=None)
        cleaned_gold = kinds.unlabelled(cleaned_gold)
        if kind == "choice":
            if letter is not None:
                return _wrong("different")
            return _wrong("hedged" if kinds.choices(cleaned) else "unparseable")
    else:
        cleaned = kinds.unlabelled(cleaned)
    several = kinds.letters(cleaned_gold) if kind in (None, "choice") else None
    if several is not None and several == kinds.letters(cleaned):
        return Comparison(verdict="correct", reason=None)
    checker = Checker(policy, algebra or NoAlgebra(), identity)
    expected = read_clean(cleaned_gold)
    given = read_clean(cleaned)
    if expected is None:
        return _undecided("gold_unparseable")
    if given is None:
        return _wrong("unparseable")
    if kind == "text" and not isinstance(given, Words):
        given = Words(cleaned, cleaned.casefold()) if isinstance(expected, Words) else given
    try:
        same = checker.same(expected, given)
    except Unreadable as error:
        return _wrong(error.reason) if _readable(expected, policy, algebra) else _undecided("gold_unparseable")
    if same:
        return Comparison(verdict="correct", reason=None)
    return _wrong("hedged" if _hedged(expected, given) else "different")


def _wrong(reason: Reason) -> Comparison:
    return Comparison(verdict="wrong", reason=reason)


def _undecided(reason: Reason) -> Comparison:
    return Comparison(verdict="undecided", reason=reason)


def _readable(gold: Value, policy: Policy, algebra: Algebra | None) -> bool:
    """Whether the gold can be compared with itself, so that what failed was the answer."""
    try:
        Checker(policy, algebra or NoAlgebra(), identity=False).same(gold, gold)
    except Unreadable:
        return False
    return True


def _hedged(gold: Value, answer: Value) -> bool:
    """Whether the answer names several values where one is asked for."""
    scalar = isinstance(gold, Number | Quantity | Formula | Words | Clock)
    return scalar and isinstance(answer, Group) and answer.opening == "" and len(answer.items) > 1
