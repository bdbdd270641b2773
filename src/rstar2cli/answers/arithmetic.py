r"""Exact rational arithmetic on a cleaned text: ``5!7!``, ``2\frac{1}{2}``, ``(9+1)/4``, ``2^{10}``.

A recursive-descent reader over digits and whole numbers; anything else (a letter, a root, a number
that would be too large) gives null and is left to algebra. Nothing of the text is ever evaluated
as code.
"""

from __future__ import annotations

import re
from fractions import Fraction
from math import factorial

MAX_BITS = 1 << 16
"""Largest numerator or denominator that is computed; what would be larger is not a number here."""
MAX_DEPTH = 40
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d*)?|\.\d+)|(?P<command>\\(?:frac|cdot|times|div|binom))(?![A-Za-z])|(?P<sign>[-+*/^!(){}\[\]]))"
)


class _NotPlain(Exception):
    """Not rational arithmetic, or too large."""


def evaluate(text: str) -> Fraction | None:
    """The value of a text of rational arithmetic; null if it is anything else."""
    tokens: list[str] = []
    at = 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            return None
        if tokens and match["number"] and tokens[-1][0].isdigit():
            return None  # two numbers side by side mean nothing definite
        tokens.append(match["number"] or match["command"] or match["sign"])
        at = match.end()
    reader = _Reader(tokens)
    try:
        value = reader.sum()
    except (_NotPlain, ZeroDivisionError):
        return None
    return value if reader.at == len(tokens) else None


class _Reader:
    def __init__(self, tokens: list[str]) -> None:
        self.tokens, self.at, self.depth = tokens, 0, 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, *wanted: str) -> str:
        token = self.peek()
        if not token or (wanted and token not in wanted):
            raise _NotPlain
        self.at += 1
        return token

    def sum(self) -> Fraction:
        value = self.product()
        while self.peek() in ("+", "-"):
            sign = self.take()
            term = self.product()
            value = _bounded(value + term if sign == "+" else value - term)
        return value

    def product(self) -> Fraction:
        value = self.signed()
        while (token := self.peek()) and token not in "+-)}]!^":
            if token in ("*", "\\cdot", "\\times"):
                self.take()
                value = _bounded(value * self.signed())
            elif token in ("/", "\\div"):
                self.take()
                value = _bounded(value / self.signed())
            else:  # side by side
                value = _bounded(value * self.power())
        return value

    def signed(self) -> Fraction:
        sign = 1
        while self.peek() in ("+", "-"):
            sign = -sign if self.take() == "-" else sign
        return sign * self.power()

    def power(self) -> Fraction:
        base = self.postfixed()
        if self.peek() != "^":
            return base
        self.take("^")
        exponent = self.group("{", "}") if self.peek() == "{" else self.signed()
        if exponent.denominator != 1:
            raise _NotPlain
        size = max(base.numerator.bit_length(), base.denominator.bit_length())
        if abs(exponent) * size > MAX_BITS and abs(base) != 1 and base:
            raise _NotPlain
        if base == 0 and exponent <= 0:
            raise _NotPlain
        return base ** int(exponent)

    def postfixed(self) -> Fraction:
        value = self.atom()
        while self.peek() == "!":
            self.take()
            if value.denominator != 1 or not 0 <= value <= 5000:
                raise _NotPlain
            value = _bounded(Fraction(factorial(int(value))))
        return value

    def atom(self) -> Fraction:
        token = self.take()
        if token == "\\frac":
            return self.fraction()
        if token == "\\binom":
            above, below = self.group("{", "}"), self.group("{", "}")
            return _bounded(Fraction(_binomial(above, below)))
        if token in ("(", "{", "["):
            self.at -= 1
            return self.group(token, {"(": ")", "{": "}", "[": "]"}[token])
        if not (token[0].isdigit() or token[0] == "."):
            raise _NotPlain
        value = Fraction(token if token != "." else "x")
        if self.peek() == "\\frac" and "." not in token:  # a mixed number
            self.take()
            part = self.fraction()
            if not 0 < part < 1:
                raise _NotPlain
            return value + part
        return _bounded(value)

    def fraction(self) -> Fraction:
        above, below = self.group("{", "}"), self.group("{", "}")
        return _bounded(above / below)

    def group(self, opening: str, closing: str) -> Fraction:
        self.take(opening)
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _NotPlain
        value = self.sum()
        self.take(closing)
        self.depth -= 1
        return value


def _bounded(value: Fraction) -> Fraction:
    if value.numerator.bit_length() > MAX_BITS or value.denominator.bit_length() > MAX_BITS:
        raise _NotPlain
    return value


def _binomial(above: Fraction, below: Fraction) -> int:
    from math import comb

    if above.denominator != 1 or below.denominator != 1 or not below >= 0 or not 0 <= above <= 5000 or below > 5000:
        raise _NotPlain
    return comb(int(above), int(below))
