"""Equality of formulas: their values at fixed points, told apart to full precision; structure where there is no value.

Two formulas with equal values at several points chosen without regard to them are the same function
but for a chance that no answer can aim at, and unequal values are a proof that they differ. So no
``simplify`` runs: its time has no bound and its failure means nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import mpmath
import sympy

from rstar2cli.answers.algebra import Unreadable
from rstar2cli.answers.values import Relation
from rstar2cli.grading.formula import parse
from rstar2cli.grading.numeric import DIGITS, NotNumeric, TooLarge, values

_POINTS = 8
_ENOUGH = 3
_NONSENSE = (ArithmeticError, ValueError, TypeError, AttributeError, NotImplementedError, IndexError)
"""What sympy raises when it computes something that has no meaning (its ShapeErrors are ValueErrors)."""
_SPARE = 4
"""Digits of a value that rounding may have spoilt."""


class Sympy:
    """The ``Algebra`` of ``answers.equivalence``."""

    def equal(self, gold: str, answer: str) -> bool:
        """Whether two formulas have the same value wherever both have one (or are equal matrices)."""
        first, second = parse(gold), parse(answer)
        try:
            return _same(first, second, answer)
        except _NONSENSE as error:
            raise Unreadable(answer) from error  # a matrix of one row squared, 7 mod 0

    def rounds_to(self, gold: str, value: Fraction, places: int) -> bool:
        """Whether the constant ``gold`` rounds to ``value``."""
        expression = parse(gold)
        if _names(expression):
            return False
        try:
            (exact,), _, _ = _values([expression], {}, gold)
        except NotNumeric:
            return False
        with mpmath.workdps(DIGITS):
            if mpmath.im(exact):
                return False
            off = abs(mpmath.re(exact) - mpmath.mpf(value.numerator) / value.denominator)
            return bool(off <= mpmath.mpf(10) ** -places / 2 * (1 + mpmath.mpf(10) ** -12))

    def same_relation(self, gold: Relation, answer: Relation) -> bool:
        """Whether two equations or inequalities differ by a constant factor only, link by link of a chain."""
        first, second = _links(gold), _links(answer)
        if len(first) != len(second):
            return False
        unused = list(second)
        for link in first:
            partner = next((other for other in unused if _same_link(link, other)), None)
            if partner is None:
                return False
            unused.remove(partner)
        return True

    def rank(self, values: list[str]) -> list[int]:
        """Places of constants in increasing order."""
        for text in values:
            try:
                (number,), _, _ = _values([parse(text)], {}, text)
            except NotNumeric:
                raise Unreadable(text) from None
            if mpmath.im(number):
                raise Unreadable(text)
        numbers, digits, noise = _values([parse(text) for text in values], {}, values[0])
        order: list[Any] = []
        for number in sorted(numbers):
            if not order or not _close(order[-1], number, digits, noise):
                order.append(number)
        return [
            next(at for at, other in enumerate(order) if _close(other, number, digits, noise)) for number in numbers
        ]


def _same(a: Any, b: Any, text: str) -> bool:
    if _has_matrix(a) or _has_matrix(b):
        return _same_matrix(a, b, text)
    if not isinstance(a, sympy.Expr) or not isinstance(b, sympy.Expr):
        return bool(a == b)
    if a in _INFINITE or b in _INFINITE:
        return bool(a == b)
    symbols = _names(a, b)
    agreed = 0
    for point in _points(symbols, _integer_symbols(a) | _integer_symbols(b)):
        try:
            (x, y), digits, noise = _values([a, b], point, text)
        except NotNumeric:
            continue
        if symbols and _is_real(x) != _is_real(y):
            continue  # outside of where both are real
        if not _close(x, y, digits, noise):
            return False
        agreed += 1
        if not symbols:
            return True
    return agreed >= _ENOUGH if agreed else bool(a == b or a.doit() == b.doit())


def _has_matrix(expression: Any) -> bool:
    matrices = (sympy.MatrixBase, sympy.MatrixExpr)
    return isinstance(expression, matrices) or any(
        isinstance(node, matrices) for node in sympy.preorder_traversal(expression)
    )


def _same_matrix(a: Any, b: Any, text: str) -> bool:
    first, second = (m.doit() if hasattr(m, "doit") else m for m in (a, b))
    if getattr(first, "shape", None) != getattr(second, "shape", None):
        return False
    if not isinstance(first, sympy.MatrixBase) or not isinstance(second, sympy.MatrixBase):
        return bool(first == second)
    return all(_same(x, y, text) for x, y in zip(first, second, strict=True))


def _links(relation: Relation) -> list[tuple[Any, str, str]]:
    """(left - right, sign with > turned to <, text) of every link."""
    links = []
    for left, sign, right in zip(relation.sides, relation.signs, relation.sides[1:], strict=False):
        if sign in (">", ">="):
            left, right, sign = right, left, sign.replace(">", "<")
        a, b = parse(left), parse(right)
        if not isinstance(a, sympy.Expr) or not isinstance(b, sympy.Expr):
            raise Unreadable(relation.source)
        links.append((sympy.Add(a, sympy.Mul(-1, b, evaluate=False), evaluate=False), sign, relation.source))
    return links


def _same_link(first: tuple[Any, str, str], second: tuple[Any, str, str]) -> bool:
    """Whether the differences of two links have a constant quotient: positive for an order, any but 0 otherwise."""
    (a, sign, _), (b, other, text) = first, second
    if sign != other:
        return False
    symbols = _names(a, b)
    quotient, agreed, good_for = None, 0, DIGITS
    for point in _points(symbols, _integer_symbols(a) | _integer_symbols(b)):
        try:
            (x, y), digits, noise = _values([a, b], point, text)
        except NotNumeric:
            continue
        with mpmath.workdps(digits):
            zeros = [abs(number) < mpmath.mpf(10) ** (_SPARE - digits) for number in (x, y)]
            if any(zeros):
                if not all(zeros):
                    return False
                continue
            now = x / y
        if not _is_real(now):
            continue
        good_for = min(good_for, digits)  # of the quotients before, too
        if quotient is not None and not _close(quotient, now, good_for, noise):
            return False
        quotient, agreed = now, agreed + 1
    if quotient is None or agreed < _ENOUGH:
        return False
    return sign in ("=", "!=") or mpmath.re(quotient) > 0


def _values(expressions: list[Any], point: dict[str, Any], text: str) -> tuple[list[Any], int, Any]:
    try:
        return values(expressions, {"i": mpmath.mpc(0, 1), **point})
    except (TooLarge, RecursionError):
        raise Unreadable(text, "over_cap") from None


def _names(*expressions: Any) -> list[str]:
    """Names of the variables; i is the imaginary unit."""
    return sorted({symbol.name for expression in expressions for symbol in expression.free_symbols} - {"i"})


def _points(symbols: Sequence[str], integers: set[str]) -> list[dict[str, Any]]:
    """Points to evaluate at: positive ones, then of both signs; small integers for what must be an integer.

    They depend on the names' order alone, so a verdict never changes between runs.
    """
    points = []
    for trial in range(_POINTS if symbols else 1):
        point = {}
        for place, name in enumerate(symbols):
            draw = _draw(trial, place)
            if name in integers:
                point[name] = mpmath.mpf(2 + draw % 9)
            else:
                # denominators without small factors; magnitudes from 0.1 to about 3
                size = mpmath.mpf(10_007 + draw % 290_000) / 99_991
                if trial == _POINTS - 1:
                    size = mpmath.mpf(3 + draw % 5)  # an integer tells a floor from a ceiling
                elif trial == _POINTS - 2:
                    size *= 1999  # a large one, max(x, 100) from 100
                point[name] = -size if trial >= _POINTS // 2 and (draw >> 20) % 2 else size
        points.append(point)
    return points


def _draw(trial: int, place: int) -> int:
    from rstar2cli.core.seeds import derive_seed

    return derive_seed(0, "algebra", trial, place)


def _integer_symbols(expression: Any) -> set[str]:
    """Names that stand where an integer is meant: limits of sums, factorials, binomials, gcd."""
    found: set[str] = set()
    for node in sympy.preorder_traversal(expression):
        if isinstance(node, sympy.Sum | sympy.Product):
            for limit in node.limits:
                for end in limit[1:]:
                    found |= {s.name for s in end.free_symbols}
        elif getattr(node.func, "__name__", "") in ("factorial", "binomial", "gcd", "lcm", "Mod"):
            found |= {s.name for s in node.free_symbols}
    return found


def _is_real(x: Any) -> bool:
    return bool(abs(mpmath.im(x)) <= abs(x) * mpmath.mpf(10) ** (_SPARE - DIGITS))


def _close(x: Any, y: Any, digits: int, noise: Any) -> bool:
    """Whether two values agree to the digits that they are good for; ``noise``: their absolute error beside that."""
    with mpmath.workdps(digits + 15):
        scale = max(abs(x), abs(y)) * mpmath.mpf(10) ** -digits
        return bool(abs(x - y) <= (scale + noise) * 10**_SPARE)


_INFINITE = frozenset({sympy.oo, -sympy.oo, sympy.zoo, sympy.nan})
