"""Sets of real numbers by membership: where two sets change is a list of points, and between those nothing changes.

Two sets are equal when the same points and the same gaps between points belong to both. That covers
unions, intersections, differences, single points and inequalities with one rule and no case work.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from rstar2cli.answers import scan
from rstar2cli.answers.formulas import turned, variables
from rstar2cli.answers.numbers import latex, read_number
from rstar2cli.answers.read import read_clean
from rstar2cli.answers.values import Empty, Formula, Group, Named, Number, Reals, Relation, SetBuilt, Value

MINUS_INFINITY, INFINITY = "-oo", "oo"
End = Value | str
"""An end point: a value, or one of the two infinities."""


@dataclass(frozen=True, slots=True)
class Span:
    """All numbers from one end to the other."""

    low: End
    low_closed: bool
    high: End
    high_closed: bool


@dataclass(frozen=True, slots=True)
class Combined:
    """A union, intersection or difference; ``both``: what two inequalities say that only a comma joins."""

    operation: str
    left: RealSet
    right: RealSet


RealSet = Span | Combined | tuple[()]
"""``()`` is the empty set."""
_DISTANCE = re.compile(r"\| ?([A-Za-z]) ?(?:([+-]) ?([^|]+?))? ?\|")
EVERYTHING = Span(MINUS_INFINITY, False, INFINITY, False)


def real_set(value: Value) -> tuple[RealSet, str | None] | None:
    """A value as a set of real numbers and the variable that it is written with; null if it is not one."""
    if isinstance(value, Empty):
        return (), None
    if isinstance(value, Reals):
        return EVERYTHING, None
    if isinstance(value, Named):
        inner = real_set(value.value) if isinstance(value.value, Group | SetBuilt | Reals | Empty) else None
        return None if inner is None else (inner[0], value.name)
    if isinstance(value, Relation):
        return _from_relation(value)
    if isinstance(value, SetBuilt):
        left, right = real_set(value.left), real_set(value.right)
        if left is None or right is None:
            return None
        return Combined(value.operation, left[0], right[0]), left[1] or right[1]
    if isinstance(value, Group):
        return _from_group(value)
    return None


def breakpoints(a: RealSet) -> list[Value]:
    """All finite end points."""
    if isinstance(a, Span):
        return [end for end in (a.low, a.high) if not isinstance(end, str)]
    if isinstance(a, Combined):
        return breakpoints(a.left) + breakpoints(a.right)
    return []


def same_set(a: RealSet, b: RealSet, rank: Callable[[list[Value]], list[int]]) -> bool:
    """Whether two sets have the same members.

    ``rank`` puts values in order: equal ranks for equal values, 0 for the least, without gaps.
    """
    points = breakpoints(a) + breakpoints(b)
    places = dict(zip(map(id, points), rank(points), strict=True))
    count = max(places.values(), default=-1) + 1
    # gap before point k is 2k, the point itself 2k + 1, the gap after the last 2 * count
    cells = range(2 * count + 1)
    a, b = _decided(a, cells, places), _decided(b, cells, places)
    return all(_contains(a, at, places) == _contains(b, at, places) for at in cells)


def _decided(a: RealSet, cells: range, places: dict[int, int]) -> RealSet:
    """``both`` as an intersection, or where that is empty as the union that must have been meant: x < 1, x > 3."""
    if not isinstance(a, Combined):
        return a
    left, right = _decided(a.left, cells, places), _decided(a.right, cells, places)
    if a.operation != "both":
        return Combined(a.operation, left, right)
    common = Combined("cap", left, right)
    return common if any(_contains(common, at, places) for at in cells) else Combined("cup", left, right)


def _contains(a: RealSet, at: int, places: dict[int, int]) -> bool:
    if isinstance(a, Combined):
        left, right = _contains(a.left, at, places), _contains(a.right, at, places)
        return {"cup": left or right, "cap": left and right, "setminus": left and not right}[a.operation]
    if not isinstance(a, Span):
        return False
    if a.low == INFINITY or a.high == MINUS_INFINITY:
        return False
    if not isinstance(a.low, str):
        low = 2 * places[id(a.low)] + 1
        if at < low or (at == low and not a.low_closed):
            return False
    if not isinstance(a.high, str):
        high = 2 * places[id(a.high)] + 1
        if at > high or (at == high and not a.high_closed):
            return False
    return True


def _from_group(group: Group) -> tuple[RealSet, str | None] | None:
    if group.opening == "{":
        members: RealSet = ()
        for item in group.items:
            if not isinstance(item, Number | Formula):
                return None
            members = Combined("cup", members, Span(item, True, item, True))
        return members, None
    if group.opening == "":
        return _alternatives(group)
    if len(group.items) != 2 or group.opening not in "([" or group.closing not in ")]":
        return None
    low, high = (_end(item) for item in group.items)
    if low is None or high is None:
        return None
    return Span(low, group.opening == "[", high, group.closing == "]"), None


def _alternatives(group: Group) -> tuple[RealSet, str | None] | None:
    """``x < 1 or x > 3``: what all items say together, of one variable."""
    together: RealSet | None = None
    names = set()
    operation = {"or": "cup", "and": "cap"}.get(group.joiner, "both")
    for item in group.items:
        part = _point(item) if isinstance(item, Named) else real_set(item)
        if part is None or isinstance(item, Group):
            return None
        together = part[0] if together is None else Combined(operation, together, part[0])
        names.add(part[1])
    return (together, names.pop()) if together is not None and len(names) == 1 else None


def _point(named: Named) -> tuple[RealSet, str | None] | None:
    """``x = 3`` among inequalities."""
    if isinstance(named.value, Number | Formula):
        return Span(named.value, True, named.value, True), named.name
    return real_set(named)


def _from_relation(relation: Relation) -> tuple[RealSet, str | None] | None:
    """``x < 3``, ``1 \\le x < 5``, ``x \\neq 2``: a bare variable between constants."""
    sides, signs = relation.sides, relation.signs
    if len(sides) == 3 and len(signs) == 2 and _variable(sides[1]):
        first = _half(sides[1], turned(signs[0]), sides[0])
        second = _half(sides[1], signs[1], sides[2])
        return None if first is None or second is None else (Combined("cap", first, second), sides[1])
    if len(sides) != 2:
        return None
    for size, sign, bound in ((sides[0], signs[0], sides[1]), (sides[1], turned(signs[0]), sides[0])):
        distance = _DISTANCE.fullmatch(size)
        if distance:
            return _around(distance, sign, bound)
    if _variable(sides[0]):
        half = _half(sides[0], signs[0], sides[1])
        return None if half is None else (half, sides[0])
    if _variable(sides[1]):
        half = _half(sides[1], turned(signs[0]), sides[0])
        return None if half is None else (half, sides[1])
    return None


def _around(distance: re.Match[str], sign: str, bound: str) -> tuple[RealSet, str | None] | None:
    """``|x - 1| < 2`` and ``|x| \\ge 3``."""
    radius, centre = read_number(bound), read_number(distance[3] or "0")
    if radius is None or centre is None or radius.value < 0 or sign not in ("<", "<=", ">", ">="):
        return None
    middle = centre.value if distance[2] == "-" else -centre.value
    low, high = (Number(latex(end), end) for end in (middle - radius.value, middle + radius.value))
    inside: RealSet = Span(low, sign in ("<=", ">"), high, sign in ("<=", ">"))
    return (inside if sign in ("<", "<=") else Combined("setminus", EVERYTHING, inside)), distance[1]


def _half(name: str, sign: str, bound: str) -> RealSet | None:
    value = read_clean(bound)
    end = None if value is None else _end(value)
    if end is None or name in variables(bound):
        return None
    if sign == "!=":
        return None if isinstance(end, str) else Combined("setminus", EVERYTHING, Span(end, True, end, True))
    if sign in ("<", "<="):
        return Span(MINUS_INFINITY, False, end, sign == "<=")
    if sign in (">", ">="):
        return Span(end, sign == ">=", INFINITY, False)
    return None


def _variable(text: str) -> bool:
    bare = text.replace(" ", "")
    return bare not in ("e", "\\pi", "\\infty", "i") and (
        (len(bare) == 1 and bare.isalpha())
        or (bare.startswith("\\") and bare[1:].isalpha() and bare in _GREEK)
        or (len(bare) > 3 and bare[0].isalpha() and bare[1:3] == "_{" and bare.endswith("}") and scan.balanced(bare))
    )


_GREEK = frozenset(
    "\\" + name
    for name in [
        "alpha",
        "beta",
        "gamma",
        "delta",
        "epsilon",
        "theta",
        "lambda",
        "mu",
        "rho",
        "sigma",
        "tau",
        "phi",
        "omega",
        "psi",
        "eta",
        "xi",
    ]
)


def _end(value: Value) -> End | None:
    text = value.source.replace(" ", "")
    if text in ("\\infty", "+\\infty"):
        return INFINITY
    if text == "-\\infty":
        return MINUS_INFINITY
    return value if isinstance(value, Number | Formula) else None
