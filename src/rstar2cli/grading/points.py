"""Where two formulas are compared: fixed points that tell apart what answers confuse.

Moderate numbers of both signs for every formula. What changes at some place only (a floor, an
absolute value, a maximum) is also looked at far out on both sides, at integers, and just beside
them; what needs integers (a gcd, a binomial, a power of -1) at even and odd ones with and without
common factors. They depend on the names' order alone, so a verdict never changes between runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import mpmath
import sympy

_PLAIN = 8
_STEPS = 20
_WHOLE = 14
_SHARED = (12, 18, 6, 4, 30, 9, 8, 15, 2, 10, 36, 7, 24, 5, 3, 20)
"""Integers many of which share factors, both even and odd."""
_INTEGER_FUNCTIONS = ("factorial", "binomial", "gcd", "lcm", "Mod")
_STEPPED = ("Abs", "floor", "ceiling", "Max", "Min", "sign")
_COUNTERS = frozenset("nmkNMjp")
"""Letters that stand for integers in a floor."""


def names(*expressions: Any) -> list[str]:
    """Names of the variables; i is the imaginary unit."""
    return sorted({symbol.name for expression in expressions for symbol in expression.free_symbols} - {"i"})


def points(*expressions: Any) -> list[dict[str, Any]]:
    """Values of the variables at which the expressions are compared; one empty point if there are none."""
    symbols = names(*expressions)
    if not symbols:
        return [{}]
    whole = set().union(*(_integers(expression) for expression in expressions))
    stepped = any(_has(expression, _STEPPED) for expression in expressions)
    count = _WHOLE if whole else _PLAIN
    if stepped:
        count = _STEPS
    return [
        {name: _whole(trial, place) if name in whole else _real(trial, place) for place, name in enumerate(symbols)}
        for trial in range(count)
    ]


def _whole(trial: int, place: int) -> Any:
    """An integer; the first are small, so that factorials and sums of few terms are among them."""
    draw = _draw(trial, place)
    return mpmath.mpf(2 + draw % 9 if trial < 5 else _SHARED[draw % len(_SHARED)])


def _real(trial: int, place: int) -> Any:
    draw = _draw(trial, place)
    sign = -1 if (draw >> 20) % 2 else 1
    # denominators without small factors; magnitudes from 0.1 to about 3
    moderate = mpmath.mpf(10_007 + draw % 290_000) / 99_991
    if trial < _PLAIN // 2:
        return moderate
    if trial < _PLAIN - 2:
        return sign * moderate
    if trial == _PLAIN - 2:
        return sign * moderate * 1999
    if trial == _PLAIN - 1:
        return mpmath.mpf(3 + draw % 5)
    return _beside_steps(trial - _PLAIN, draw, sign, moderate)


def _beside_steps(trial: int, draw: int, sign: int, moderate: Any) -> Any:
    """Far out with either sign, integers, and numbers just under or over an integer."""
    choices: tuple[Callable[[], Any], ...] = (
        lambda: moderate * 1999,
        lambda: -moderate * 1999,
        lambda: moderate * 37,
        lambda: -moderate * 37,
        lambda: mpmath.mpf(draw % 60),
        lambda: -mpmath.mpf(draw % 60),
        lambda: mpmath.mpf(sign * (2 * (draw % 30))),
        lambda: mpmath.mpf(sign * (2 * (draw % 30) + 1)),
        lambda: mpmath.mpf(draw % 24) - mpmath.mpf(10) ** -7,
        lambda: mpmath.mpf(12 * (draw % 5 + 1)) - mpmath.mpf(10) ** -7,
        lambda: mpmath.mpf(draw % 24) + mpmath.mpf(10) ** -7,
        lambda: sign * (mpmath.mpf(draw % 24) + mpmath.mpf(1) / 2),
    )
    return choices[trial]()


def _draw(trial: int, place: int) -> int:
    from rstar2cli.core.seeds import derive_seed

    return derive_seed(0, "algebra", trial, place)


def _has(expression: Any, functions: Iterable[str]) -> bool:
    return any(getattr(node.func, "__name__", "") in functions for node in sympy.preorder_traversal(expression))


def _integers(expression: Any) -> set[str]:
    """Names that stand where an integer is meant: limits of sums, factorials, gcd, powers of -1, n in a floor."""
    found: set[str] = set()
    for node in sympy.preorder_traversal(expression):
        kind = getattr(node.func, "__name__", "")
        if isinstance(node, sympy.Sum | sympy.Product):
            found |= {s.name for limit in node.limits for end in limit[1:] for s in end.free_symbols}
        elif kind in _INTEGER_FUNCTIONS:
            found |= {s.name for s in node.free_symbols}
        elif isinstance(node, sympy.Pow) and node.base.is_Rational and node.base < 0:
            found |= {s.name for s in node.exp.free_symbols}
        elif kind in ("floor", "ceiling"):
            found |= {s.name for s in node.free_symbols if s.name in _COUNTERS}
    return found
