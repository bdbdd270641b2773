"""What only algebra can decide, as questions; reading answers none of them."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal, Protocol

from rstar2cli.answers import caps
from rstar2cli.answers.spelling import clean
from rstar2cli.answers.values import Relation


class NeedsAlgebra(Exception):
    """The comparison can't be settled by reading alone."""


class Unreadable(Exception):
    """A formula can't be parsed, or is over a cap."""

    def __init__(self, text: str, reason: Literal["unparseable", "over_cap"] = "unparseable") -> None:
        """``text``: the formula."""
        super().__init__(text)
        self.text = text
        self.reason: Literal["unparseable", "over_cap"] = reason


class Algebra(Protocol):
    """Answers about formulas in LaTeX. Each raises ``Unreadable`` for text that it can't read."""

    def equal(self, gold: str, answer: str) -> bool:
        """Whether two formulas have the same value (or the same matrix)."""
        ...

    def rounds_to(self, gold: str, value: Fraction, places: int) -> bool:
        """Whether the constant ``gold``, rounded to ``places``, is ``value``."""
        ...

    def same_relation(self, gold: Relation, answer: Relation) -> bool:
        """Whether two equations or inequalities say the same."""
        ...

    def rank(self, values: list[str]) -> list[int]:
        """Places of constants in increasing order, equal ones alike, from 0 without gaps."""
        ...


class NoAlgebra:
    """Checks the caps; what passes them raises ``NeedsAlgebra``."""

    def equal(self, gold: str, answer: str) -> bool:
        """Needs algebra, unless a formula is refused."""
        raise _needed(gold, answer)

    def rounds_to(self, gold: str, value: Fraction, places: int) -> bool:
        """Needs algebra, unless the gold is refused."""
        raise _needed(gold)

    def same_relation(self, gold: Relation, answer: Relation) -> bool:
        """Needs algebra, unless a side is refused."""
        raise _needed(*gold.sides, *answer.sides)

    def rank(self, values: list[str]) -> list[int]:
        """Needs algebra, unless a value is refused."""
        raise _needed(*values)


def _needed(*formulas: str) -> NeedsAlgebra | Unreadable:
    for formula in formulas:
        refusal = caps.refusal(clean(formula))
        if refusal is not None:
            return Unreadable(formula, refusal)
    return NeedsAlgebra()
