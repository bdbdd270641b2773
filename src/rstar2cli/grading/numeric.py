"""The value of an expression at a point, to as many digits as telling it from another takes.

Mpmath arithmetic over the expression's tree, nothing evaluated symbolically. A sum that has a term
far below its size raises the precision, so 10^{-500} beside 1 is seen, not rounded away.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mpmath
import sympy
from sympy.core.function import AppliedUndef

DIGITS = 40
ROUGH = 14
MAX_DIGITS = 12_000
MAX_TERMS = 2_000
_MAX_LOG2 = 5_000_000
_MAX_MAG = 64

Point = Mapping[str, Any]
"""Values of the symbols, by name."""


class NotNumeric(Exception):
    """The expression has no number as its value here."""


class TooLarge(Exception):
    """Computing it would take too much."""


def values(expressions: Sequence[Any], point: Point) -> tuple[list[Any], int, Any]:
    """(values at the point, digits that they are good for, absolute error of sums and functions).

    All are to the same precision. Integrals, limits and infinite sums are good for ``ROUGH`` digits only.
    Raises ``NotNumeric`` (undefined there, or no number) and ``TooLarge``.
    """
    digits = DIGITS
    while True:
        with mpmath.workdps(digits + 15):
            walk = _Walk(point, digits)
            try:
                results = [+walk.value(expression) for expression in expressions]
            except (ZeroDivisionError, ValueError, OverflowError, mpmath.libmp.NoConvergence, TypeError) as error:
                raise NotNumeric(str(error)) from error
            if walk.needed <= digits:
                if not all(mpmath.isfinite(result) for result in results):
                    raise NotNumeric("not finite")
                return results, digits if walk.exact else ROUGH, walk.noise
        digits = walk.needed
        if digits > MAX_DIGITS:
            raise TooLarge(f"{digits} digits")


class _Walk:
    def __init__(self, point: Point, digits: int) -> None:
        self.point, self.digits = point, digits
        self.needed = digits
        self.exact = True
        self.noise = mpmath.mpf(0)

    def value(self, e: Any) -> Any:
        if e.is_Rational:
            return mpmath.mpf(e.p) / e.q
        if e.is_Symbol:
            return self.symbol(e.name)
        if e.is_Add:
            return self.sum([self.value(term) for term in e.args])
        if e.is_Mul:
            product = mpmath.mpf(1)
            for factor in e.args:
                product *= self.value(factor)
            return product
        if e.is_Pow or isinstance(e, sympy.exp):
            return self.power(*e.as_base_exp()) if e.is_Pow else mpmath.exp(self.small(self.value(e.args[0])))
        if e in _CONSTANTS:
            return +_CONSTANTS[e]
        if isinstance(e, sympy.Sum | sympy.Product):
            return self.repeated(e)
        if isinstance(e, sympy.Integral):
            return self.integral(e)
        if isinstance(e, sympy.Derivative | sympy.Limit):
            self.exact = self.exact and isinstance(e, sympy.Derivative)
            if isinstance(e, sympy.Derivative) and not e.expr.free_symbols & set(e.variables):
                return self.unknown(e)  # dy/dx: of y all is open
            if any(_indexed(e.args[0], index) for index in e.args[1].free_symbols | {e.args[1]}):
                raise NotNumeric("a limit of a sequence that is not known")
            done = e.doit()
            if isinstance(done, sympy.Derivative | sympy.Limit):
                raise NotNumeric(str(type(e)))
            return self.value(done)
        function = _FUNCTIONS.get(e.func.__name__)
        if function is None and isinstance(e, AppliedUndef):
            return self.unknown(e)
        if function is None:
            raise NotNumeric(e.func.__name__)
        self.noise = max(self.noise, +mpmath.eps)
        return function(*(self.value(argument) for argument in e.args))

    def symbol(self, name: str) -> Any:
        if name not in self.point:
            raise NotNumeric(name)
        return self.point[name]

    def sum(self, terms: list[Any]) -> Any:
        total = mpmath.fsum(terms)
        sizes = [mpmath.mag(term) for term in terms if abs(term) > self.noise]  # sin(pi) is 0, not 1e-56
        if len(sizes) > 1:
            self.noise = max(self.noise, mpmath.ldexp(mpmath.eps, max(sizes)))
            # the least term must be seen at the precision of the largest
            spread = int((max(sizes) - min(sizes)) * 0.30103)
            self.needed = max(self.needed, spread + DIGITS)
        return total

    def power(self, base: Any, exponent: Any) -> Any:
        power = self.value(exponent)
        if base is sympy.E:
            return mpmath.exp(self.small(power))
        b = self.value(base)
        if b != 0 and mpmath.isfinite(b) and abs(b) != 1 and abs(power) * max(1, abs(mpmath.mag(b))) > _MAX_LOG2:
            raise TooLarge("power")
        if b == 0 and mpmath.re(power) <= 0:
            raise NotNumeric("0 to a power that is not positive")
        if exponent.is_Rational and exponent.q % 2 and exponent.q > 1 and mpmath.im(b) == 0 and b < 0:
            root = -mpmath.root(-b, exponent.q)  # the real root: the cube root of -8 is -2
            return root ** int(exponent.p)
        return b**power

    def small(self, exponent: Any) -> Any:
        """An exponent of e that can be computed; far below zero, one whose power is as good as 0."""
        if mpmath.mag(exponent) <= _MAX_MAG:
            return exponent
        if mpmath.re(exponent) < 0 and not mpmath.im(exponent):
            return -mpmath.ldexp(1, _MAX_MAG)
        raise TooLarge("exponential")

    def repeated(self, e: Any) -> Any:
        if len(e.limits) != 1:
            raise NotNumeric("several indices")
        index, low, high = e.limits[0]
        if _indexed(e.function, index):
            raise NotNumeric("terms that are not known")
        first, last = self.value(low), (sympy.oo if high is sympy.oo else self.value(high))
        if last is sympy.oo:
            self.exact = False
            steps = mpmath.nsum if isinstance(e, sympy.Sum) else mpmath.nprod
            with mpmath.workdps(20):
                return steps(lambda k: self.at(index, k).value(e.function), [int(first), mpmath.inf])
        if first != int(first) or last != int(last):
            raise NotNumeric("limits that are no integers")
        if last - first > MAX_TERMS:
            raise TooLarge("terms")
        terms = [self.at(index, mpmath.mpf(k)).value(e.function) for k in range(int(first), int(last) + 1)]
        return self.sum(terms) if isinstance(e, sympy.Sum) else mpmath.fprod(terms)

    def integral(self, e: Any) -> Any:
        if len(e.limits) != 1 or len(e.limits[0]) != 3:
            raise NotNumeric("an indefinite or multiple integral")
        index, low, high = e.limits[0]
        ends = [
            self.value(end) if end not in (sympy.oo, -sympy.oo) else mpmath.mpf("inf") * (1 if end is sympy.oo else -1)
            for end in (low, high)
        ]
        self.exact = False
        with mpmath.workdps(20):
            return mpmath.quad(lambda x: self.at(index, x).value(e.function), ends)

    def at(self, index: Any, k: Any) -> _Walk:
        return _Walk({**self.point, index.name: k}, self.digits)  # precision is not adapted within

    def unknown(self, e: Any) -> Any:
        """A function or derivative that nothing is known of: some number that depends on its name and arguments."""
        derivative = isinstance(e, sympy.Derivative)
        known = sorted(e.free_symbols, key=str) if derivative else e.args
        arguments = [str(e) if derivative else "", *(mpmath.nstr(self.value(argument), 20) for argument in known)]
        digest = hashlib.blake2b(repr((e.func.__name__, arguments)).encode(), digest_size=8).digest()
        return mpmath.mpf(int.from_bytes(digest)) / 2**64 + mpmath.mpf(1) / 3


def _indexed(expression: Any, index: Any) -> bool:
    """Whether a symbol in it has the index below it, as a_k has k: a sequence and no constant."""
    below = re.compile(rf"_\{{?.*(?<![A-Za-z]){re.escape(index.name)}(?![A-Za-z])") if index.is_Symbol else None
    return below is not None and any(below.search(symbol.name) for symbol in expression.free_symbols)


def _integer(number: Any) -> int:
    if mpmath.im(number) or number != mpmath.floor(number) or abs(number) > 10**30:
        raise NotNumeric("an integer is needed")
    return int(number)


def _factorial(n: Any) -> Any:
    if abs(n) > 10**6:
        raise TooLarge("factorial")
    return mpmath.factorial(n)


def _binomial(n: Any, k: Any) -> Any:
    if abs(n) > 10**6 or abs(k) > 10**6:
        raise TooLarge("binomial")
    return mpmath.binomial(n, k)


def _floor(x: Any) -> Any:
    nearest = mpmath.nint(x)
    # 2.999… to all digits is 3 that arithmetic has rounded
    return nearest if abs(x - nearest) < mpmath.mpf(10) ** (-DIGITS + 5) else mpmath.floor(x)


def _folded(step: Callable[[int, int], int]) -> Callable[..., Any]:
    def run(*numbers: Any) -> Any:
        whole = [_integer(number) for number in numbers]
        result = whole[0]
        for other in whole[1:]:
            result = step(result, other)
        return mpmath.mpf(result)

    return run


def _lcm(a: int, b: int) -> int:
    from math import lcm

    return lcm(a, b)


def _gcd(a: int, b: int) -> int:
    from math import gcd

    return gcd(a, b)


def _log(x: Any, base: Any = None) -> Any:
    if x == 0:
        raise NotNumeric("log of 0")
    return mpmath.log(x) if base is None else mpmath.log(x) / mpmath.log(base)


def _extreme(choose: Callable[..., Any]) -> Callable[..., Any]:
    def run(*numbers: Any) -> Any:
        if any(mpmath.im(number) for number in numbers):
            raise NotNumeric("an order of complex numbers")
        return choose(numbers)

    return run


_CONSTANTS: dict[Any, Any] = {
    sympy.pi: mpmath.pi,
    sympy.E: mpmath.e,
    sympy.I: mpmath.mpc(0, 1),
    sympy.GoldenRatio: mpmath.phi,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(mpmath, name) for name in (
        "sin", "cos", "tan", "cot", "sec", "csc", "asin", "acos", "atan", "acot", "asec", "acsc",
        "sinh", "cosh", "tanh", "coth", "sech", "csch", "asinh", "acosh", "atanh", "gamma", "zeta",
    )},
    "log": _log,
    "Abs": abs,
    "floor": _floor,
    "ceiling": lambda x: -_floor(-x),
    "factorial": _factorial,
    "binomial": _binomial,
    "Min": _extreme(min),
    "Max": _extreme(max),
    "Mod": lambda a, b: a - b * _floor(a / b),
    "gcd": _folded(_gcd),
    "lcm": _folded(_lcm),
    "UnevaluatedExpr": lambda x: x,
    "re": mpmath.re,
    "im": mpmath.im,
    "conjugate": mpmath.conj,
    "sign": mpmath.sign,
}  # fmt: skip
