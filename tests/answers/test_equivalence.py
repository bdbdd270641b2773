from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rstar2cli.answers.equivalence import MAX_CHARS, compare
from rstar2cli.answers.normalize import integer, rational
from rstar2cli.records import AnswerKind

BIG = "9007199254740993"  # 2**53 + 1: a float would round it


@pytest.mark.parametrize(
    "text, form",
    [
        ("42", "42"),
        (" +042 ", "42"),
        ("-0", "0"),
        ("\u22125", "-5"),
        ("- 5", "-5"),
        ("1,234,567", "1234567"),
        ("1{,}234", "1234"),
        (r"1\,234\,567", "1234567"),
        (r"12\!345", "12345"),
        ("12 345", "12345"),
        ("7.", "7"),
        ("7.000", "7"),
        (".0", "0"),
        ("$7$", "7"),
        (r"\(7\)", "7"),
        (r"\text{7}", "7"),
        (BIG, BIG),
        ("0" * 900 + "1", "1"),
        ("7.5", None),
        ("1,23", None),
        ("1,2345", None),
        ("1 2", None),
        ("1e3", None),
        ("0x10", None),
        ("1_000", None),
        ("5\u00b2", None),
        ("\u0665", None),
        ("--5", None),
        ("6/2", None),
        ("seven", None),
        (".", None),
        ("+", None),
        ("", None),
        ("nan", None),
    ],
)
def test_integers(text: str, form: str | None) -> None:
    assert integer(text) == form


@pytest.mark.parametrize(
    "text, form",
    [
        ("1/2", "1/2"),
        ("2/4", "1/2"),
        ("-2/4", "-1/2"),
        ("1/-2", "-1/2"),
        (r"\frac{1}{2}", "1/2"),
        (r"-\dfrac{2}{4}", "-1/2"),
        (r"\frac12", "1/2"),
        (r"\frac1{12}", "1/12"),
        ("0.5", "1/2"),
        ("3", "3/1"),
        ("0.1", "1/10"),
        ("--5", None),
        (r"-\frac{-1}{2}", "1/2"),
        ("1/0", None),
        ("1/2/3", None),
        (r"\frac{1}{0}", None),
        (r"\frac{x}{2}", None),
        ("1 1/2", None),
    ],
)
def test_rationals(text: str, form: str | None) -> None:
    assert rational(text) == form


@given(st.integers())
def test_every_spelling_of_an_integer_is_one(value: int) -> None:
    for text in (str(value), f"{value:,}", f"{value}.00", f"{value:,}".replace(",", "{,}"), f" {value:+d} "):
        assert integer(text) == str(value)


@given(st.fractions(max_denominator=10**9))
def test_every_spelling_of_a_rational_is_one(value: Fraction) -> None:
    form = f"{value.numerator}/{value.denominator}"
    assert rational(form) == form
    assert rational(f"{3 * value.numerator}/{3 * value.denominator}") == form


@given(st.text(max_size=80), st.sampled_from(["integer", "rational", "expression", "choice", "text"]))
def test_no_text_raises(text: str, kind: AnswerKind) -> None:
    compare(text, "1", kind)
    compare("1", text, kind)


@pytest.mark.parametrize(
    "answer, gold, kind, verdict, reason",
    [
        ("4", "4.0", "integer", "correct", None),
        (BIG, "9007199254740992", "integer", "wrong", "different"),
        ("4 or 5", "4", "integer", "wrong", "hedged"),
        (r"4 \text{ or } 5", "4", "integer", "wrong", "hedged"),
        ("4, 5", "4", "integer", "wrong", "hedged"),
        ("about 4", "4", "integer", "wrong", "unparseable"),
        ("", "4", "integer", "wrong", "unparseable"),
        ("4" * (MAX_CHARS + 1), "4", "integer", "wrong", "over_cap"),
        ("4", "four", "integer", "undecided", "gold_unparseable"),
        ("4", "", "integer", "undecided", "gold_unparseable"),
        ("0.25", r"\frac{1}{4}", "rational", "correct", None),
        ("(b)", "B", "choice", "correct", None),
        (r"\text{C}", "B", "choice", "wrong", "different"),
        ("A or B", "B", "choice", "wrong", "hedged"),
        (r"\text{Blue  Whale}", "blue whale", "text", "correct", None),
        ("x + 1", "x+1", "expression", "correct", None),
        (r"\dfrac{x}{2}", r"\frac{x}{2}", "expression", "correct", None),
        ("2/4", "0.5", "expression", "correct", None),
        ("x+2", "x+1", "expression", "wrong", "different"),
    ],
)
def test_verdicts(answer: str, gold: str, kind: AnswerKind, verdict: str, reason: str | None) -> None:
    result = compare(answer, gold, kind)
    assert (result.verdict, result.reason) == (verdict, reason)
