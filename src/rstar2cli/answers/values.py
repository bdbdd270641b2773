"""What an answer can be. Each value keeps its cleaned text as ``source``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Value:
    """Any value."""

    source: str = field(compare=False)
    """The cleaned text it was read from."""


@dataclass(frozen=True, slots=True)
class Number(Value):
    """An exact rational number."""

    value: Fraction
    places: int | None = field(default=None, compare=False)
    """Digits after the point if it was written as a decimal, else null."""
    digits: int = field(default=0, compare=False)
    """Significant digits of a decimal."""


@dataclass(frozen=True, slots=True)
class Formula(Value):
    """LaTeX that only algebra can compare. Two are equal here when their texts are."""

    source: str
    """The cleaned text."""


@dataclass(frozen=True, slots=True)
class Words(Value):
    """Text, compared without regard to case and punctuation."""

    words: str


@dataclass(frozen=True, slots=True)
class Quantity(Value):
    """A value with a unit or a percent sign."""

    value: Value
    unit: str
    """Canonical name, as ``units`` gives it."""


@dataclass(frozen=True, slots=True)
class Group(Value):
    """Several values: a tuple, a closed or half-open pair, a set, a bare list."""

    opening: str
    """``(``, ``[``, ``{``, ``<``, or nothing for a bare list."""
    closing: str
    items: tuple[Value, ...]
    joiner: str = ","
    """``or`` if the items of a bare list are alternatives."""


@dataclass(frozen=True, slots=True)
class Named(Value):
    """``x = 5``, ``(p, q) = (3, 2)``, ``f(x) = …``: a value and what it is a value of."""

    name: str
    value: Value


@dataclass(frozen=True, slots=True)
class Relation(Value):
    """An equation or a chain of inequalities."""

    sides: tuple[str, ...]
    """Cleaned texts, one more than the signs."""
    signs: tuple[str, ...]
    """``=``, ``<``, ``<=``, ``>``, ``>=``, ``!=``."""


@dataclass(frozen=True, slots=True)
class Twice(Value):
    """An inequality and the interval that it is, both written."""

    first: Value
    second: Value


@dataclass(frozen=True, slots=True)
class Worked(Value):
    """A calculation without variables, \\sqrt{8} = 2\\sqrt{2} \\approx 2.83: what it says, if it is true."""

    value: Value
    """The exact value that it ends with."""
    steps: tuple[str, ...]
    """Texts that must be equal; the last may be a decimal that is near."""


@dataclass(frozen=True, slots=True)
class SetBuilt(Value):
    """A union, intersection or difference of sets."""

    operation: str
    """``cup``, ``cap`` or ``setminus``."""
    left: Value
    right: Value


@dataclass(frozen=True, slots=True)
class Matrix(Value):
    """Rows of equal length."""

    rows: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True, slots=True)
class Clock(Value):
    """A time of day or a duration of hours and minutes."""

    seconds: int
    half: str
    """``am``, ``pm`` or nothing."""


@dataclass(frozen=True, slots=True)
class Ratio(Value):
    """``3 : 4 : 5``."""

    terms: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Empty(Value):
    """The empty set; that there is no solution."""


@dataclass(frozen=True, slots=True)
class Reals(Value):
    """All real numbers."""


Read = Callable[[str, int], Value | None]
"""The reader of parts: (text, how deep it stands) → value; null if there is nothing to read."""
