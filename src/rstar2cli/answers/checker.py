"""Whether a value says what the gold says, kind by kind."""

from __future__ import annotations

import contextlib
import re
from fractions import Fraction
from itertools import pairwise

from rstar2cli.answers.algebra import Algebra, Unreadable
from rstar2cli.answers.assign import assigned
from rstar2cli.answers.formulas import as_latex, as_relation, variables
from rstar2cli.answers.groups import same_group, same_matrix
from rstar2cli.answers.numbers import latex, read_number, rounds_to
from rstar2cli.answers.policy import Policy
from rstar2cli.answers.read import read_clean
from rstar2cli.answers.realset import real_set
from rstar2cli.answers.setcheck import same_as_sets
from rstar2cli.answers.units import factor
from rstar2cli.answers.values import (
    Clock,
    Empty,
    Formula,
    Group,
    Matrix,
    Named,
    Number,
    Quantity,
    Ratio,
    Reals,
    Relation,
    SetBuilt,
    Twice,
    Value,
    Words,
    Worked,
)

_NUMBER_WORDS = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20,
}  # fmt: skip
_ARTICLE = re.compile(r"^(?:an?|the) (?=\w{2})")
_FUNCTION_OF = re.compile(r"([A-Za-z])\(([A-Za-z])\)")
_ALIASES = {"dne": "does not exist", "undefined": "does not exist"}


class Checker:
    """Compares values under a policy; formulas through an ``Algebra``."""

    def __init__(self, policy: Policy, algebra: Algebra, identity: bool) -> None:
        """``identity``: whether equal texts are the same unread."""
        self.policy, self.algebra, self.identity = policy, algebra, identity

    def same(self, gold: Value, answer: Value) -> bool:
        """Whether ``answer`` says what ``gold`` says."""
        if self.identity and gold.source == answer.source and type(gold) is type(answer):
            return True
        if isinstance(gold, Number) and isinstance(answer, Number):
            return self.same_number(gold, answer)
        if isinstance(gold, Twice):
            return self.same(gold.first, answer)
        if isinstance(answer, Twice):
            return self.same(gold, answer.first) and self.same(gold, answer.second)
        if isinstance(gold, Worked):
            return self.same(gold.value, answer)
        if isinstance(answer, Worked):
            return self.true(answer) and self.same(gold, answer.value)
        names = assigned(gold), assigned(answer)
        if names[0] is not None and names[1] is not None and set(names[0]) == set(names[1]):
            return all(self.same(value, names[1][name]) for name, value in names[0].items())
        if any(isinstance(value, Group) and _has_relation(value) for value in (gold, answer)) and all(
            real_set(value) is not None for value in (gold, answer)
        ):
            return same_as_sets(self, gold, answer)
        if isinstance(gold, Named) or isinstance(answer, Named):
            return self.same_named(gold, answer)
        if isinstance(gold, Quantity) or isinstance(answer, Quantity):
            return self.same_quantity(gold, answer)
        if isinstance(gold, Words) or isinstance(answer, Words):
            return self.same_words(gold, answer)
        if isinstance(gold, Clock) or isinstance(answer, Clock):
            return self.same_clock(gold, answer)
        if isinstance(gold, Ratio) or isinstance(answer, Ratio):
            return self.same_ratio(gold, answer)
        if isinstance(gold, Matrix) or isinstance(answer, Matrix):
            return same_matrix(self, gold, answer)
        if any(isinstance(value, Relation | SetBuilt | Reals | Empty) for value in (gold, answer)):
            return same_as_sets(self, gold, answer)
        if isinstance(gold, Group) or isinstance(answer, Group):
            return same_group(self, gold, answer)
        return self.same_formula(gold, answer)

    def true(self, worked: Worked) -> bool:
        """Whether each step has the value of the one before; steps that algebra can't read count as true."""
        for before, after in pairwise(worked.steps):
            number = read_number(after)
            with contextlib.suppress(Unreadable):
                if number is not None and number.places:
                    last = Fraction(1 if number.value >= 0 else -1, 10**number.places)
                    # rounded, or cut off
                    if not any(self.algebra.rounds_to(before, number.value + up, number.places) for up in (0, last)):
                        return False
                elif not self.algebra.equal(before, after):
                    return False
        return True

    def same_number(self, gold: Number, answer: Number) -> bool:
        """Exactly equal, or a decimal of enough digits that rounds an exact gold."""
        if gold.value == answer.value:
            return True
        exact_gold = gold.places is None and gold.value.denominator != 1
        if exact_gold and answer.places and answer.digits >= self.policy.decimal_digits:
            return rounds_to(gold.value, answer.places) == answer.value
        return False

    def same_formula(self, gold: Value, answer: Value) -> bool:
        """By algebra."""
        if isinstance(answer, Number) and answer.places and answer.digits >= self.policy.decimal_digits:
            return self.algebra.rounds_to(gold.source, answer.value, answer.places)
        return self.algebra.equal(as_latex(gold), as_latex(answer))

    def same_words(self, gold: Value, answer: Value) -> bool:
        """Without regard to case and punctuation."""
        if isinstance(gold, Words) and isinstance(answer, Words):
            return _alias(gold.words) == _alias(answer.words)
        words, other = (gold, answer) if isinstance(gold, Words) else (answer, gold)
        assert isinstance(words, Words)
        if isinstance(other, Empty):
            return False
        if isinstance(other, Number):
            return _NUMBER_WORDS.get(words.words) == other.value
        return words.words.replace(" ", "") == other.source.replace(" ", "").casefold()

    def same_quantity(self, gold: Value, answer: Value) -> bool:
        """Value and unit; a missing unit as the policy says."""
        if isinstance(gold, Quantity) and isinstance(answer, Quantity):
            if gold.unit == answer.unit:
                return self.same(gold.value, answer.value)
            sizes = factor(gold.unit), factor(answer.unit)
            if sizes[0] is None or sizes[1] is None or sizes[0][0] != sizes[1][0]:
                return False
            return self.same(_scaled(gold.value, sizes[0][1]), _scaled(answer.value, sizes[1][1]))
        quantity, other = (gold, answer) if isinstance(gold, Quantity) else (answer, gold)
        assert isinstance(quantity, Quantity)
        pair = (quantity.value, other) if quantity is gold else (other, quantity.value)
        if isinstance(other, Words | Clock | Ratio | Relation | Empty | Matrix):
            return False
        if quantity.unit == "%":
            if isinstance(other, Group):
                return self.same(*pair)
            share = _scaled(quantity.value, Fraction(1, 100))
            # 50% for 50, but not 0.5% for 0.5: nobody asks for half a percent by writing 0.5
            plausible = quantity is gold or not (isinstance(other, Number) and abs(other.value) <= 1)
            if self.policy.percent == "either" and plausible and self.same(*pair):
                return True
            return self.same(*((share, other) if quantity is gold else (other, share)))
        if quantity.unit == "deg" and "\\pi" in other.source:
            radians = Formula(rf"\frac{{\pi}}{{180}} \cdot ({as_latex(quantity.value)})")
            return self.same(*((radians, other) if quantity is gold else (other, radians)))
        return self.policy.units == "optional" and self.same(*pair)

    def same_named(self, gold: Value, answer: Value) -> bool:
        """By value where the name is the same or missing, else as equations."""
        if isinstance(gold, Named) and isinstance(answer, Named):
            if gold.name == answer.name or _function_names(gold.name, answer.name):
                return self.same(gold.value, answer.value)
            renamed = _renamed(gold, answer)
            if renamed is not None:
                return self.same(gold.value, renamed)
            if _product_of(gold.name, answer.name) or _product_of(answer.name, gold.name):
                return self.algebra.same_relation(as_relation(gold), as_relation(answer))
            if _is_number(gold.value) or _is_number(answer.value):
                return False
            if gold.name.startswith("(") != answer.name.startswith("("):
                return self.same(gold.value, answer.value)
            if not (isinstance(gold.value, Formula) and isinstance(answer.value, Formula)):
                return False
            return self.algebra.same_relation(as_relation(gold), as_relation(answer))
        named, other = (gold, answer) if isinstance(gold, Named) else (answer, gold)
        assert isinstance(named, Named)
        if isinstance(other, Relation):
            sets = real_set(named), real_set(other)
            if sets[0] is not None and sets[1] is not None:
                return same_as_sets(self, gold, answer)
            if set(other.signs) != {"="} or isinstance(named.value, Group | SetBuilt):
                return False
            pair = (as_relation(named), other) if named is gold else (other, as_relation(named))
            return self.algebra.same_relation(*pair)
        if (
            isinstance(other, Group)
            and other.opening in ("", "{")
            and any(isinstance(item, Named) for item in other.items)
        ):
            if {item.name for item in other.items if isinstance(item, Named)} == {named.name}:
                items = tuple(item.value if isinstance(item, Named) else item for item in other.items)
                values = Group(other.source, other.opening, other.closing, items, other.joiner)
                return self.same(named.value, values) if named is gold else self.same(values, named.value)
            return same_group(self, gold, answer)
        if self.policy.names == "required":
            return False
        return self.same(named.value, other) if named is gold else self.same(other, named.value)

    def same_clock(self, gold: Value, answer: Value) -> bool:
        """The same time of day; `2:30` is also `2:30 pm`."""
        if isinstance(gold, Clock) and isinstance(answer, Clock):
            if gold.half and answer.half:
                return _day_seconds(gold) == _day_seconds(answer)
            return gold.seconds == answer.seconds or _day_seconds(gold) == _day_seconds(answer)
        clock, other = (gold, answer) if isinstance(gold, Clock) else (answer, gold)
        assert isinstance(clock, Clock)
        if clock.half or not isinstance(other, Number | Formula | Ratio):
            return False
        terms = tuple(Number(part, Fraction(int(part))) for part in clock.source.split(":"))
        ratio = Ratio(clock.source, terms)
        return self.same_ratio(*((ratio, other) if clock is gold else (other, ratio)))

    def same_ratio(self, gold: Value, answer: Value) -> bool:
        """Terms in proportion; `3:4` is also `3/4`."""
        if isinstance(gold, Ratio) and isinstance(answer, Ratio):
            if len(gold.terms) != len(answer.terms):
                return False
            return all(
                self.same(_product(gold.terms[0], b), _product(answer.terms[0], a))
                for a, b in zip(gold.terms[1:], answer.terms[1:], strict=True)
            )
        ratio, other = (gold, answer) if isinstance(gold, Ratio) else (answer, gold)
        assert isinstance(ratio, Ratio)
        if len(ratio.terms) != 2 or not isinstance(other, Number | Formula):
            return False
        quotient = _quotient(*ratio.terms)
        return quotient is not None and (self.same(quotient, other) if ratio is gold else self.same(other, quotient))


def _is_number(value: Value) -> bool:
    return isinstance(value, Number) or (isinstance(value, Quantity) and isinstance(value.value, Number))


def _scaled(value: Value, by: Fraction) -> Value:
    if isinstance(value, Number):
        number = value.value * by
        return Number(latex(number), number)
    return Formula(rf"{latex(by)} \cdot ({value.source})")


def _product(a: Value, b: Value) -> Value:
    if isinstance(a, Number) and isinstance(b, Number):
        return Number(latex(a.value * b.value), a.value * b.value)
    return Formula(rf"({as_latex(a)}) \cdot ({as_latex(b)})")


def _quotient(a: Value, b: Value) -> Value | None:
    if isinstance(a, Number) and isinstance(b, Number):
        return None if b.value == 0 else Number(latex(a.value / b.value), a.value / b.value)
    return Formula(rf"\frac{{{as_latex(a)}}}{{{as_latex(b)}}}")


def _alias(words: str) -> str:
    words = _ARTICLE.sub("", words)
    return _ALIASES.get(words, words)


def _day_seconds(clock: Clock) -> int:
    hours = clock.seconds // 3600
    shift = {"am": -12 if hours == 12 else 0, "pm": 0 if hours == 12 else 12}.get(clock.half, 0)
    return clock.seconds + 3600 * shift


def _has_relation(group: Group) -> bool:
    return group.opening == "" and any(isinstance(item, Relation) for item in group.items)


def _product_of(name: str, letter: str) -> bool:
    """``xy`` is a product with the factor ``y``."""
    return name.isalpha() and 1 < len(name) < 4 and len(letter) == 1 and letter in name


def _renamed(gold: Named, answer: Named) -> Value | None:
    """The value of ``f(t) = 2t`` in the variable of ``f(x) = 2x``; null if they are not of one function."""
    names = [_FUNCTION_OF.fullmatch(name.name) for name in (gold, answer)]
    if names[0] is None or names[1] is None or names[0][1] != names[1][1]:
        return None
    wanted, own = names[0][2], names[1][2]
    source = answer.value.source
    if wanted in variables(source):
        return None
    return read_clean(re.sub(rf"(\\[A-Za-z]+)|{re.escape(own)}", lambda match: match[1] or wanted, source))


def _function_names(a: str, b: str) -> bool:
    """``y`` and ``f(x)`` name the same function."""
    return "y" in (a, b) and any(re.fullmatch(r"[a-zA-Z]\(x\)", name) for name in (a, b))
