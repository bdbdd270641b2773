"""Reading what has signs of relation: equations, inequalities, assignments, approximations; and named points."""

from __future__ import annotations

import re

from rstar2cli.answers import scan
from rstar2cli.answers.formulas import variables
from rstar2cli.answers.names import is_name, name_key
from rstar2cli.answers.numbers import read_number
from rstar2cli.answers.units import split_unit
from rstar2cli.answers.values import Formula, Group, Named, Number, Quantity, Read, Relation, Value, Worked

_SIGNS = {
    "\\le": "<=", "\\ge": ">=", "\\neq": "!=", "<": "<", ">": ">", "=": "=", "\\equiv": "=", "\\Rightarrow": "=>",
}  # fmt: skip
_LETTER = re.compile(r"[A-Za-z](?:_\{[A-Za-z0-9]+\})?")
_POINT = re.compile(r"([A-Z]'?(?:_\{\d\})?) ?(\(.*\d.*\))")


def related(text: str, depth: int, read: Read) -> Value | None:
    about = scan.split(text, ["\\approx"])
    if len(about) == 2 and about[0][1]:
        return _about(text, about[0][1], about[1][1], depth, read)
    inside = scan.split(text, ["\\in", "\\notin"])
    if len(inside) == 2 and inside[1][0] == "\\in" and is_name(inside[0][1]):
        value = read(inside[1][1], depth + 1)
        return None if value is None else Named(text, name_key(inside[0][1]), value)
    parts = scan.split(text, list(_SIGNS))
    if len(parts) < 2 or any(not part for _, part in parts):
        return None
    signs = tuple(_SIGNS[mark] for mark, _ in parts[1:])
    sides = tuple(part for _, part in parts)
    if "=>" in signs:
        if any(read_number(side) for side in sides[:-1]):
            return Formula(text)  # 6 => 7 names two numbers
        return read(sides[-1], depth + 1) if signs[-1] == "=>" else None
    if set(signs) == {"="} and is_name(sides[0]):
        value = read(sides[-1], depth + 1)
        if value is None:
            return None
        return (
            Named(text, name_key(sides[0]), value) if len(sides) == 2 or _consistent(sides[1:], depth, read) else None
        )
    if set(signs) == {"="} and _consistent(sides, depth, read):
        return read(sides[-1], depth + 1)
    if set(signs) == {"="} and not any(variables(side) for side in sides) and read_number(sides[0]) is None:
        value = read(sides[-1], depth + 1)
        return None if value is None else Worked(text, value, sides)
    if signs == ("=",) and _LETTER.fullmatch(sides[1]) and read_number(sides[0]) is not None:
        return Named(text, sides[1], read(sides[0], depth + 1) or Formula(sides[0]))
    return Relation(text, sides, signs)


def _consistent(sides: tuple[str, ...], depth: int, read: Read) -> bool:
    """Whether a chain of numbers is true: 3+2=5."""
    numbers = [read(side, depth + 1) for side in sides]
    return all(isinstance(n, Number) and n == numbers[0] for n in numbers)


def _about(text: str, exact: str, decimals: str, depth: int, read: Read) -> Value | None:
    """An exact value and its decimals say the exact one; a name and decimals say the decimals."""
    value = read(exact, depth + 1)
    if value is None or isinstance(value, Named):
        return value
    if is_name(exact) or variables(exact):
        right = read(decimals, depth + 1)
        return None if right is None else Named(text, name_key(exact), right)
    number, unit = split_unit(decimals) or (decimals, "")
    steps = value.steps if isinstance(value, Worked) else (exact,)
    told = value.value if isinstance(value, Worked) else value
    return Worked(
        text, Quantity(text, told, unit) if unit and isinstance(told, Number | Formula) else told, (*steps, number)
    )


def point(text: str, depth: int, read: Read) -> Value | None:
    """``A(1, 2)``."""
    match = _POINT.fullmatch(text)
    if match is None or not scan.closes_last(match[2]):
        return None
    value = read(match[2], depth + 1)
    return Named(text, match[1], value) if isinstance(value, Group) and len(value.items) > 1 else None


def named_number(text: str) -> Value | None:
    """``x = 1,000`` before its comma is taken for that of a list."""
    name, equals, right = text.partition("=")
    number = read_number(right.strip()) if equals and "," in right and is_name(name) else None
    return None if number is None else Named(text, name_key(name), number)
