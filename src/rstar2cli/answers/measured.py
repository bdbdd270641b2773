"""Reading numbers with something to them: units, times of day, ratios, thousands marks."""

from __future__ import annotations

import re

from rstar2cli.answers import scan
from rstar2cli.answers.numbers import latex, read_number
from rstar2cli.answers.units import compound, split_unit
from rstar2cli.answers.values import (
    Clock,
    Empty,
    Formula,
    Named,
    Number,
    Quantity,
    Ratio,
    Read,
    Reals,
    Relation,
    Value,
    Words,
)

CLOCK = re.compile(r"(\d{1,2}) ?: ?([0-5]\d)(?: ?: ?([0-5]\d))? ?(?:\\text\{)? ?([AaPp])?\.?([Mm])?\.?\}?")
_HOUR = re.compile(r"(\d{1,2}) ?(?:\\text\{)? ?([AaPp])\.? ?[Mm]\.?\}?")
_GROUPED = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})+(?!\d|,\d)")
_IN_FORMULA = re.compile(r"\\[A-Za-z]|[A-Za-z/+*^=]|(?<=[^\s({\[])-")


def clock(text: str) -> Value | None:
    hour = _HOUR.fullmatch(text)
    if hour and 0 < int(hour[1]) <= 12:
        return Clock(text, int(hour[1]) * 3600, f"{hour[2].lower()}m")
    match = CLOCK.fullmatch(text)
    if match is None or int(match[1]) > 24:
        return None
    half = f"{match[4].lower()}m" if match[4] and match[5] else ""
    return Clock(text, int(match[1]) * 3600 + int(match[2]) * 60 + int(match[3] or 0), half)


def ratio(text: str, depth: int, read: Read) -> Value | None:
    parts = scan.split(text, [":"]) if ":" in text else scan.split(text, ["to", "\\text{to}"])
    if len(parts) < 2 or len(parts) > 8:
        return None
    terms = [read(part, depth + 1) for _, part in parts]
    if any(not isinstance(term, Number | Formula) for term in terms):
        return None
    return Ratio(text, tuple(term for term in terms if term is not None))


def compound_quantity(text: str) -> Value | None:
    found = compound(text) if text[0].isdigit() else None
    return None if found is None else Quantity(text, Number(latex(found[0]), found[0]), found[1])


def ungrouped(text: str) -> str:
    """Without the thousands marks of numbers that stand in a formula or beside the items of a spaced list."""
    if re.search(r"[,;] |;", text):
        return _GROUPED.sub(lambda match: match[0].replace(",", ""), text)
    rest = _GROUPED.sub("", text)
    if rest == text or "," in rest or not _IN_FORMULA.search(rest) or re.search(r"\( ?\)", rest):
        return text
    return _GROUPED.sub(lambda match: match[0].replace(",", ""), text)


def measured(text: str) -> Value | None:
    """A number with its unit, before its commas are taken for those of a list: $1,234.50."""
    found = split_unit(text)
    number = read_number(found[0]) if found else None
    if found is None or number is None:
        return None
    return Quantity(text, number, found[1]) if found[1] else number


def with_unit(text: str, depth: int, read: Read) -> Value | None:
    found = split_unit(text)
    if found is None:
        return None
    value = read(found[0], depth + 1)
    if value is None or isinstance(value, Words | Quantity | Named | Relation | Empty | Reals):
        return None
    return Quantity(text, value, found[1]) if found[1] else value
