from __future__ import annotations

import pytest

from rstar2cli.answers.extract import count_answers, extract_answer, last_boxed


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
