from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rstar2cli.answers import arithmetic
from rstar2cli.answers.numbers import read_number, rounds_to
from rstar2cli.answers.spelling import clean


@pytest.mark.parametrize(
    "text, value",
    [
        ("42", "42"),
        (" +042 ", "42"),
        ("-0", "0"),
        ("\u22125", "-5"),
        ("- 5", "-5"),
        ("1,234,567", "1234567"),
        ("12,34,567", "1234567"),
        ("1{,}234", "1234"),
        (r"1\,234\,567", "1234567"),
        (r"12\!345", "12345"),
        (r"11,\! 111,\! 100", "11111100"),
        ("12 345", "12345"),
        ("7.", "7"),
        (".5", "1/2"),
        (r"\(7\)", "7"),
        (r"\text{7}", "7"),
        ("\u0665", "5"),
        ("\uff17", "7"),
        ("½", "1/2"),
        ("1 1/2", "3/2"),
        (r"3\frac{1}{7}", "22/7"),
        (r"-3\frac12", "-7/2"),
        (r"0.1\overline{6}", "1/6"),
        (r"0.\overline{142857}", "1/7"),
        ("0.(3)", "1/3"),
        ("1.5e3", "1500"),
        (r"2.5 \times 10^{-3}", "1/400"),
        ("10^5", "100000"),
        ("1011_2", "11"),
        (r"\text{FF}_{16}", "255"),
        ("5 million", "5000000"),
        ("(9+1)", "10"),
        ("5!7!", "604800"),
        (r"\binom{10}{3}", "120"),
        ("2^3 3^2", "72"),
        ("1/-2", "-1/2"),
        ("6/2", "3"),
        (r"-\frac{-1}{2}", "1/2"),
        ("0" * 900 + "1", "1"),
        ("1,23", None),
        ("1,2345", None),
        ("1 2", None),
        ("0x10", None),
        ("1_000", None),
        ("9_8", None),
        ("1/0", None),
        (r"\frac{1}{0}", None),
        ("seven", None),
        (".", None),
        ("+", None),
        ("", None),
        ("nan", None),
        ("inf", None),
        ("9^{9^{9^9}}", None),
        ("((9!)!)!", None),
        ("(" * 500 + "1" + ")" * 500, None),
    ],
)
def test_spellings(text: str, value: str | None) -> None:
    number = read_number(clean(text))
    assert (None if number is None else number.value) == (None if value is None else Fraction(value))


@given(st.integers())
def test_every_spelling_of_an_integer_is_one(value: int) -> None:
    for text in (str(value), f"{value:,}", f"{value}.00", f"{value:,}".replace(",", "{,}"), f" {value:+d} "):
        number = read_number(clean(text))
        assert number is not None and number.value == value


@given(st.fractions(max_denominator=10**9))
def test_every_spelling_of_a_rational_is_one(value: Fraction) -> None:
    above, below = 3 * value.numerator, 3 * value.denominator
    for text in (f"{above}/{below}", rf"\frac{{{above}}}{{{below}}}", rf"\dfrac{{{above}}}{{{below}}}"):
        number = read_number(clean(text))
        assert number is not None and number.value == value


@given(st.integers(-(10**9), 10**9), st.integers(1, 10**6), st.integers(0, 12))
def test_rounding_is_exact_and_half_away_from_zero(above: int, below: int, places: int) -> None:
    value = Fraction(above, below)
    rounded = rounds_to(value, places)
    assert abs(rounded - value) <= Fraction(1, 2 * 10**places)
    assert rounds_to(Fraction(1, 2), 0) == 1 and rounds_to(Fraction(-1, 2), 0) == -1


@given(st.integers(0, 50), st.integers(1, 50), st.integers(0, 6), st.sampled_from("+-*/"))
def test_arithmetic_is_pythons_on_fractions(a: int, b: int, power: int, sign: str) -> None:
    x, y = Fraction(a), Fraction(b)
    expected = {"+": x + y**power, "-": x - y**power, "*": x * y**power, "/": x / y**power}[sign]
    assert arithmetic.evaluate(f"{a}{sign}({b})^{{{power}}}") == expected
