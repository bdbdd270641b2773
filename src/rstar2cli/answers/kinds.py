"""Kinds of gold answers: whether a gold is what its problem says, and what an unlabelled one is."""

from __future__ import annotations

import re

from rstar2cli.answers.numbers import read_number
from rstar2cli.answers.read import read_clean
from rstar2cli.answers.spelling import clean
from rstar2cli.answers.values import Number, Value, Words
from rstar2cli.records import AnswerKind

MAX_CHARS = 1024
_LETTER = re.compile(r"(?:\\text\{)?(?:(?:[Oo]ption|[Cc]hoice) )?[\s({\[]*([A-Za-z])[\s)}\].:]*\}?")
_LABELLED = re.compile(
    r"(?:\\text\{)?\s*(?:option |choice |answer )?\(?([A-Ja-j])(?:\)|[.:](?=[\s}]|$))\s*\}?[\s~]*(.*)",
    re.DOTALL | re.IGNORECASE,
)
_MANY_CAPITALS = re.compile(r"\(?[A-J]\)?(?:\s*(?:,|;|and|&)\s*\(?[A-J]\)?)+")
_GLUED = re.compile(r"[A-J]{2,5}")
_ONE = re.compile(r"\(?[A-J]\)?|\\text\{\(?[A-J]\)?\}")
_OPTION = re.compile(r"(?:\\text\{ ?(?:\([A-J]\)|[A-J][.:]) ?\}|\([A-J]\)|[A-J]\.(?= )) *([^\s+\-*/^_=].*)", re.DOTALL)
"""A label in brackets and what it stands before."""
_MANY = re.compile(r"\(?[A-Ja-j]\)?(?:\s*(?:,|;|and|or|/|&)\s*\(?[A-Ja-j]\)?)+")


def fits(gold: str, kind: AnswerKind | None) -> bool:
    """Whether the gold is of the kind; anything that is not empty fits no kind at all."""
    cleaned = clean(gold) if len(gold) <= MAX_CHARS else gold.strip()
    if not cleaned:
        return False
    if kind in ("integer", "rational"):
        value = read_clean(cleaned)
        value = getattr(value, "value", value) if not isinstance(value, Number) else value
        return isinstance(value, Number) and (kind == "rational" or value.value.denominator == 1)
    if kind == "choice":
        return choice(cleaned) is not None
    return True


def infer(gold: str) -> AnswerKind:
    """The strictest kind that a gold fits."""
    cleaned = clean(gold)
    number = read_number(cleaned)
    if number is not None:
        return "integer" if number.value.denominator == 1 else "rational"
    if _ONE.fullmatch(cleaned) or _OPTION.fullmatch(cleaned):
        return "choice"
    return "text" if isinstance(read_clean(cleaned), Words) else "expression"


def is_choice(cleaned_gold: str, kind: AnswerKind | None) -> bool:
    """Whether a gold is a letter of a multiple choice."""
    return kind == "choice" or (
        kind is None and (_ONE.fullmatch(cleaned_gold) or _OPTION.fullmatch(cleaned_gold)) is not None
    )


def unlabelled(cleaned: str) -> str:
    """``(B) 12`` without its label; anything else as it is."""
    match = _OPTION.fullmatch(cleaned)
    return match[1] if match else cleaned


def choice(cleaned: str) -> str | None:
    """One capital letter, from ``B``, ``(b)``, ``B.``, ``(B) 12``; null for none or several."""
    match = _LETTER.fullmatch(cleaned)
    if match:
        return match[1].upper()
    match = _LABELLED.fullmatch(cleaned)
    if match and not re.search(r"(?:^|[\s(])[A-J]\)", match[2]):
        return match[1].upper()
    return None


def letters(cleaned: str) -> frozenset[str] | None:
    """Several letters of a multiple choice: ``A, C``, ``AC``, ``A and C``; null for anything else."""
    plain = re.sub(r"\\text\{([^{}]*)\}", r"\1", cleaned)
    if _GLUED.fullmatch(plain) or _MANY_CAPITALS.fullmatch(plain):
        return frozenset(re.findall(r"[A-J]", plain))
    return None


def choices(cleaned: str) -> bool:
    """Whether it names several letters."""
    return _MANY.fullmatch(cleaned) is not None


def read_gold(gold: str) -> Value | None:
    """What a gold says; null if it is empty or too long."""
    return read_clean(clean(gold)) if len(gold) <= MAX_CHARS else None
