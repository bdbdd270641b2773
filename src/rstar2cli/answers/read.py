"""From a cleaned text to what it says: a number, a tuple, an interval, an equation, words, or a formula."""

from __future__ import annotations

import re

from rstar2cli.answers import scan
from rstar2cli.answers.measured import CLOCK, clock, compound_quantity, measured, ratio, ungrouped, with_unit
from rstar2cli.answers.numbers import read_number
from rstar2cli.answers.parts import enclosed, is_list, listed, matrix, plus_minus, set_built
from rstar2cli.answers.relations import named_number, point, related
from rstar2cli.answers.spelling import clean, is_enclosed
from rstar2cli.answers.units import split_unit
from rstar2cli.answers.values import Empty, Formula, Reals, Twice, Value, Words

MAX_DEPTH = 24
_EMPTY = re.compile(
    r"(?:\\emptyset|\\\{ ?\\\}|(?:\\text\{)?(?:there (?:is|are) )?"
    r"(?:no (?:real |integer |such |positive )?(?:solutions?|values?|numbers?|integers?)(?: exists?)?"
    r"|none|empty set|the empty set|\\text\{none\})\}?)",
    re.IGNORECASE,
)
_REALS = re.compile(
    r"(?:\\mathbb ?\{R\}|\\R|\( ?- ?\\infty ?, ?\+? ?\\infty ?\)"
    r"|(?:\\text\{)?(?:all )?(?:the )?real numbers?\}?|all reals)",
    re.IGNORECASE,
)
_APPROXIMATE = re.compile(
    r"(?:\\approx|\\text\{(?:approximately|about|approx\.?)\}|approximately|about)\s*", re.IGNORECASE
)
_SHORT_LIST = re.compile(r"\(?\w{1,3}\)?(?: (?:and|or) \(?\w{1,3}\)?)+")
_TWICE = re.compile(r"([^:]+):\s*((?:[(\[]|\\\{|\\emptyset|\\mathbb).*)", re.DOTALL)
"""An inequality, a colon, the same as an interval."""
_ORDER = re.compile(r"[<>]|\\(?:le|ge|neq)(?![A-Za-z])")
_TURNED = re.compile(r"([\[\]])([^\[\]()]*)([\[\]])")
_TELLING = re.compile(
    r"(?:\\text\{ ?)?(?:(?:so|thus|hence|therefore),? )?"
    r"(?:exactly|(?:there|it|this|that|which|(?:the|a|an|its|their|our) (?:(?!not|or|if)[a-z]+ ){1,4}?)"
    r"(?: ?(?:is|are|equals|will be|must be))|(?:a )?total(?: of)?|we (?:get|have|find|need))(?: exactly| equal to)?:?"
    r"(?: ?\} ?| )(?=[\d\\$({+.-])(?!\\text)",
    re.IGNORECASE,
)
_NUMBER_SET = re.compile(r"\\mathbb ?\{[A-QS-Z]\}(?:[\^_]\{[^{}]*\})*")
_SPOKEN = re.compile(r"[A-Za-z][A-Za-z'\". ,!?&-]*")


def read(text: str) -> Value | None:
    """What an answer says; null if nothing is left of it. ``text`` need not be cleaned."""
    return _read(clean(text), 0)


def read_clean(cleaned: str) -> Value | None:
    """The same for a text that is cleaned already."""
    return _read(cleaned, 0)


def _read(text: str, depth: int) -> Value | None:
    text = text.strip()
    if not text or depth > MAX_DEPTH:
        return Formula(text) if text else None
    number = read_number(text)
    if number is not None:
        return number
    if _EMPTY.fullmatch(text):
        return Empty(text)
    if _REALS.fullmatch(text):
        return Reals(text)
    if not scan.balanced(text):
        turned = _TURNED.sub(_brackets, text)
        return Formula(text) if turned == text or not scan.balanced(turned) else _read(turned, depth + 1)
    if "," in text:
        text = ungrouped(text)
    said_twice = _TWICE.fullmatch(text)
    if said_twice and (_ORDER.search(said_twice[1]) or _EMPTY.fullmatch(said_twice[1].strip())):
        first, second = (_read(part, depth + 1) for part in said_twice.groups())
        return None if first is None or second is None else Twice(text, first, second)
    words = _words(text)
    if words is not None:
        return words
    return (
        clock(text)
        or _told(text, depth)
        or named_number(text)
        or compound_quantity(text)
        or measured(text)
        or listed(text, depth, _read)
        or set_built(text, depth, _read)
        or related(text, depth, _read)
        or point(text, depth, _read)
        or ratio(text, depth, _read)
        or enclosed(text, depth, _read)
        or matrix(text, depth, _read)
        or plus_minus(text, depth, _read)
        or with_unit(text, depth, _read)
        or _approximate(text, depth)
        or Formula(text)
    )


def _words(text: str) -> Value | None:
    if is_enclosed(text, "\\text{", "}") and text.count("\\text") == 1:
        inner = text[len("\\text{") : -1].strip()
        if CLOCK.fullmatch(inner) or read_number(inner) is not None:
            return _read(inner, MAX_DEPTH - 1)
        unit = split_unit(inner)
        if unit is not None and read_number(unit[0]) is not None:
            return with_unit(inner, MAX_DEPTH - 1, _read)
        if "=" in inner:
            return _read(inner, MAX_DEPTH - 3)
        if "," in inner or ";" in inner or _SHORT_LIST.fullmatch(inner):
            return listed(inner, MAX_DEPTH - 2, _read) or Words(text, plain_words(inner))
        return Words(text, plain_words(inner))
    if _NUMBER_SET.fullmatch(text):
        return Words(text, text.replace(" ", ""))
    if "\\text{" in text:
        return None
    if _SPOKEN.fullmatch(text) and _has_word(text) and not is_list(text):
        return Words(text, plain_words(text))
    return None


def plain_words(text: str) -> str:
    """Words without regard to case, punctuation and runs of spaces."""
    return " ".join(re.sub(r"[^\w\s+\-/']", " ", re.sub(r"\\text\{([^{}]*)\}", r"\1", text)).casefold().split())


def _has_word(text: str) -> bool:
    return any(len(word) > 2 for word in re.findall(r"[A-Za-z]+", text))


def _told(text: str, depth: int) -> Value | None:
    """``There are 5 solutions``: what follows words that say nothing but that it is the answer."""
    match = _TELLING.match(text)
    return None if match is None else _read(text[match.end() :], depth + 1)


def _brackets(match: re.Match[str]) -> str:
    """``]2, 5[`` as ``(2, 5)``."""
    return f"{'[' if match[1] == '[' else '('}{match[2]}{']' if match[3] == ']' else ')'}"


def _approximate(text: str, depth: int) -> Value | None:
    match = _APPROXIMATE.match(text)
    return None if match is None else _read(text[match.end() :], depth + 1)
