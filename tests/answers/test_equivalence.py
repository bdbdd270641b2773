from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rstar2cli.answers.algebra import NeedsAlgebra
from rstar2cli.answers.equivalence import MAX_CHARS, compare
from rstar2cli.answers.policy import Policy
from rstar2cli.records import AnswerKind

BIG = "9007199254740993"  # 2**53 + 1: a float would round it


@pytest.mark.parametrize(
    "answer, gold, kind, verdict, reason",
    [
        ("4", "4.0", "integer", "correct", None),
        (BIG, "9007199254740992", "integer", "wrong", "different"),
        ("4 or 5", "4", "integer", "wrong", "hedged"),
        (r"4 \text{ or } 5", "4", "integer", "wrong", "hedged"),
        ("4, 5", "4", "integer", "wrong", "hedged"),
        ("", "4", "integer", "wrong", "no_answer"),
        ("$", "4", "integer", "wrong", "unparseable"),
        ("x@y", "4", "integer", "wrong", "unparseable"),
        ("9^{9^{9^9}}", "4", "integer", "wrong", "over_cap"),
        ("[none]", "4", "integer", "wrong", "different"),
        ("4" * (MAX_CHARS + 1), "4", "integer", "wrong", "over_cap"),
        ("4", "four", "integer", "undecided", "gold_unparseable"),
        ("4", "4.5", "integer", "undecided", "gold_unparseable"),
        ("4", "", "integer", "undecided", "gold_unparseable"),
        ("4", "4" * (MAX_CHARS + 1), None, "undecided", "gold_unparseable"),
        ("0.25", r"\frac{1}{4}", "rational", "correct", None),
        ("(b)", "B", "choice", "correct", None),
        ("B. 12", "B", "choice", "correct", None),
        (r"\text{C}", "B", "choice", "wrong", "different"),
        ("A or B", "B", "choice", "wrong", "hedged"),
        ("12", "B", "choice", "wrong", "unparseable"),
        (r"\text{Blue  Whale}", "blue whale", "text", "correct", None),
        ("x + 1", "x+1", "expression", "correct", None),
        (r"\dfrac{x}{2}", r"\frac{x}{2}", "expression", "correct", None),
        ("2/4", "0.5", "expression", "correct", None),
    ],
)
def test_verdicts(answer: str, gold: str, kind: AnswerKind | None, verdict: str, reason: str | None) -> None:
    result = compare(answer, gold, kind)
    assert (result.verdict, result.reason) == (verdict, reason)


@pytest.mark.parametrize(
    "policy, gold, answer",
    [
        (Policy(names="required"), "5", "x=5"),
        (Policy(names="required"), "x=5", "5"),
        (Policy(units="required"), "5", r"5\text{ cm}"),
        (Policy(units="required"), r"5\text{ cm}", "5"),
        (Policy(percent="value"), r"50\%", "50"),
        (Policy(list_order="given"), "1,2", "2,1"),
        (Policy(list_as_tuple=False), "(1,2)", "1,2"),
        (Policy(set_as_list=False), "1,2", r"\{1,2\}"),
        (Policy(interval_as_inequality=False), "x<3", r"(-\infty,3)"),
        (Policy(decimal_digits=12), r"\frac{1}{3}", "0.3333333333"),
    ],
)
def test_each_custom_can_be_turned_off(policy: Policy, gold: str, answer: str) -> None:
    assert compare(answer, gold).verdict == "correct"
    assert compare(answer, gold, policy=policy).verdict == "wrong"


def test_a_custom_is_no_excuse_for_another_value() -> None:
    strict = Policy(percent="value", units="required", names="required")
    assert compare("0.5", r"50\%", policy=strict).verdict == "correct"
    assert compare("500 cm", r"5\text{ m}", policy=strict).verdict == "correct"
    assert compare("y=5", "x=5").verdict == "wrong"


def test_identity_can_be_turned_off_to_try_a_gold_itself() -> None:
    prose = "concave up on $(0, 1)$ for $x"
    assert compare(prose, prose).verdict == "correct"
    with pytest.raises(NeedsAlgebra):
        compare(r"\sqrt{2}", r"\sqrt{2}", identity=False)


@given(st.text(max_size=80), st.sampled_from(["integer", "rational", "expression", "choice", "text", None]))
def test_no_text_raises(text: str, kind: AnswerKind | None) -> None:
    for answer, gold in ((text, "1"), ("1", text), (text, text), (text, r"\{1, x\}")):
        with contextlib.suppress(NeedsAlgebra):
            compare(answer, gold, kind)


@given(st.text(alphabet=r"\{}()[]<>=,;:.|!^_-+*/$%&~ 019xyeABor'", max_size=60))
def test_no_mathematical_gibberish_raises(text: str) -> None:
    for answer, gold in ((text, "(1,2)"), (text, "x<3"), (text, text[::-1])):
        with contextlib.suppress(NeedsAlgebra):
            compare(answer, gold)


@given(st.text(max_size=60))
def test_an_answer_is_itself(text: str) -> None:
    result = compare(text, text)
    assert result.verdict == "correct" or result.reason in ("gold_unparseable", "no_answer")


@pytest.mark.parametrize(
    "unit", [*list("$%-+!^_|(){}[],;:=<>.&~ ½√²π"), "\\{", "\\frac", "x=", "1,", "+-", "\\pm", "5 cm "]
)
def test_the_same_mark_a_thousand_times_is_no_trouble(unit: str) -> None:
    long = (unit * 1024)[:MAX_CHARS]
    for answer, gold in ((long, "7"), (long + "1", "(1,2)"), ("7", long)):
        with contextlib.suppress(NeedsAlgebra):
            compare(answer[:MAX_CHARS], gold)


def test_numbers_of_many_thousand_digits() -> None:
    assert compare("5000!", "7").verdict == "wrong"
    assert compare("2023!/2022!", "2023").verdict == "correct"
    with contextlib.suppress(NeedsAlgebra):
        assert compare("5000!", r"\sqrt{2}").verdict == "wrong"
