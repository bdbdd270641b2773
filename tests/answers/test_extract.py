from __future__ import annotations

import pytest

from rstar2cli.answers.boxes import last_boxed
from rstar2cli.answers.extract import LENIENT, Extraction, count_answers, extract_answer


@pytest.mark.parametrize(
    "text, answer",
    [
        (r"<answer>\boxed{4}</answer>", "4"),
        (r"<answer>first \boxed{3} then \boxed{ 4 }</answer>", "4"),
        (r"<answer>\boxed{1}</answer> no, <answer>\boxed{2}</answer>", "2"),
        (r"<answer>\boxed{1}</answer> <answer>\boxed{2}", "1"),
        (r"<answer>\boxed{\frac{1}{2}}</answer>", r"\frac{1}{2}"),
        (r"<answer>\boxed{\{1\}}</answer>", r"\{1\}"),
        (r"<answer>\boxed {7}</answer>", "7"),
        (r"<answer>\boxed{5} and \boxed{6</answer>", "5"),
        (r"<answer>\boxed{\boxed{5}}</answer>", r"\boxed{5}"),
        (r"<answer>4</answer>", None),
        (r"\boxed{4}", None),
        (r"<answer>\boxed{4}", None),
        (r"<answer>\boxed{1}</answer><answer>none</answer>", None),
        (r"<answer>\boxed{</answer>", None),
        ("<answer>\\boxed{4\\", None),
        ("", None),
    ],
)
def test_extraction(text: str, answer: str | None) -> None:
    assert extract_answer(text) == answer


def test_deep_nesting_and_long_text_are_no_trouble() -> None:
    assert last_boxed("\\boxed{" + "{" * 50_000 + "}" * 50_000 + "}") == "{" * 50_000 + "}" * 50_000


def test_only_complete_blocks_count() -> None:
    assert count_answers("<answer>a</answer><answer></answer><answer>") == 2
    assert count_answers("</answer><answer>") == 0


@pytest.mark.parametrize(
    "text, answer",
    [
        (r"<answer>\boxed{4}</answer>", "4"),
        ("<answer> 4 </answer>", "4"),
        (r"so \boxed{5}, no, \boxed{7}", "7"),
        (r"\boxed{1} and \boxed{2}", "1, 2"),
        (r"$\boxed{1}$, $\boxed{2}$ and $\boxed{3}$", "1, 2, 3"),
        (r"\boxed{5} or \boxed{7}", "5 or 7"),
        (r"\boxed{1} cats and \boxed{2} dogs", "1, 2"),
        (r"first \boxed{5} then finally \boxed{7}", "7"),
        (r"\boxed{5}. That is wrong, and the sum of all is \boxed{7}", "7"),
        (r"\boxed 7", "7"),
        (r"\fbox{7}", "7"),
        (r"\boxed{7}. So on average \$100.", "7"),
        (r"\boxed{255} so the final answer is $10,455$.", "10,455"),
        (r"The answer is \(9\).", "9"),
        ("Answer: 7.", "7"),
        ("Final Answer: **73**", "73"),
        ("Final Answer: The largest $n$ is 34.", "34"),
        ("We get $d=3$, so there are 12 of them.", "12"),
        ("There are 12, so $x = 4$ is it.", "x = 4"),
        ("it is 1,000.99€", "1,000.99"),
        (r"<think>\boxed{7}</think> So \boxed{8}", "8"),
        (r"<think>\boxed{7}", None),
        (r"\boxed{", None),
        (r"\boxed{7", None),
        (r"\boxed{5} no: \boxed{7", "5"),
        ("The correct option is (C).", "(C)"),
        ("The answers are 6 and 7.", "6, 7"),
        ("So $x=2$ or $x=3$.", "x=2 or x=3"),
        ("**B** or **C**", "B or C"),
        ("for 3 days, 12 in all", "12"),
        ("x is not 7", None),
        ("no idea", None),
        ("", None),
    ],
)
def test_fallbacks(text: str, answer: str | None) -> None:
    assert extract_answer(text, LENIENT) == answer


def test_fallbacks_can_be_chosen() -> None:
    text = r"the answer is 3 and \boxed{4} and 5"
    assert extract_answer(text) is None
    assert extract_answer(text, Extraction(fallbacks=("boxed",))) == "4"
    assert extract_answer(text, Extraction(fallbacks=("number",))) == "5"


@pytest.mark.parametrize(
    "text",
    ["$" * 100_000, "the answer is " * 8000, "\\boxed{" * 20_000, "<answer>" * 50_000, "1," * 50_000, "\\(" * 100_000],
)
def test_long_texts_take_time_in_proportion(text: str) -> None:
    extract_answer(text, LENIENT)
    extract_answer(text * 2, LENIENT)
