"""Equality of formulas: their values at fixed points, told apart to full precision; structure where there is no value.

Two formulas with equal values at several points chosen without regard to them are the same function
but for a chance that no answer can aim at, and unequal values are a proof that they differ. So no
``simplify`` runs: its time has no bound and its failure means nothing.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import sympy

from rstar2cli.answers.algebra import Unreadable
from rstar2cli.answers.values import Relation
from rstar2cli.grading.formula import parse
from rstar2cli.grading.numeric import DIGITS, NotNumeric, TooLarge, values
from rstar2cli.grading.points import names, points

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
        if names(expression):
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
        if _solved_for(gold, answer) or _solved_for(answer, gold):
            return True
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
    symbols = names(a, b)
    agreed, too_large = 0, None
    for point in points(a, b):
        try:
            (x, y), digits, noise = _values([a, b], point, text)
        except NotNumeric:
            continue
        except Unreadable as error:
            too_large = error  # at another point it may be small enough
            continue
        if symbols and _is_real(x) != _is_real(y):
            continue  # outside of where both are real
        if not _close(x, y, digits, noise):
            return False
        agreed += 1
        if not symbols:
            return True
    if too_large is not None and agreed < _ENOUGH:
        raise too_large
    return agreed >= _ENOUGH if agreed else bool(_rebuilt(a) == _rebuilt(b))


def _rebuilt(expression: Any) -> Any:
    """Sums and products in sympy's own order; the parser leaves them as written."""
    if not expression.args:
        return expression
    return expression.func(*(_rebuilt(argument) for argument in expression.args))


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


def _solved_for(solved: Relation, other: Relation) -> bool:
    """Whether ``y = 1/x`` solves the other equation for y, in which y stands once and to the first power: xy = 1."""
    name = solved.sides[0].replace(" ", "")
    if solved.signs != ("=",) or other.signs != ("=",) or len(name) != 1 or not name.isalpha():
        return False
    value, ((left, _, text),) = parse(solved.sides[1]), _links(other)
    if name in names(value) or name not in names(left):
        return False
    agreed = 0
    for point in points(left, value):
        try:
            (at,), _, _ = _values([value], point, text)
            rows = [
                _values([left], {**point, name: y}, text) for y in (at, mpmath.mpf(1), mpmath.mpf(2), mpmath.mpf(3))
            ]
        except NotNumeric:
            continue
        (zero,), digits, noise = rows[0]
        one, two, three = (row[0][0] for row in rows[1:])
        with mpmath.workdps(digits):
            size = abs(one) + abs(two) + abs(three)
            small = size * mpmath.mpf(10) ** (_SPARE * 3 - digits) + noise * 10**_SPARE
            if abs(zero) > small or abs(one + three - 2 * two) > small or abs(two - one) <= small:
                return False
        agreed += 1
    return agreed >= _ENOUGH


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
    quotient, agreed, good_for = None, 0, DIGITS
    for point in points(a, b):
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


def _is_real(x: Any) -> bool:
    return bool(abs(mpmath.im(x)) <= abs(x) * mpmath.mpf(10) ** (_SPARE - DIGITS))


def _close(x: Any, y: Any, digits: int, noise: Any) -> bool:
    """Whether two values agree to the digits that they are good for; ``noise``: their absolute error beside that."""
    with mpmath.workdps(digits + 15):
        scale = max(abs(x), abs(y)) * mpmath.mpf(10) ** -digits
        return bool(abs(x - y) <= (scale + noise) * 10**_SPARE)


_INFINITE = frozenset({sympy.oo, -sympy.oo, sympy.zoo, sympy.nan})
