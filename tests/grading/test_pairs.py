"""Pairs of a gold and an answer with the verdict that they must get, through the real workers.

``pairs.jsonl`` is also what ``benchmarks/answers.py`` runs on when no other file is named.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rstar2cli.answers.extract import LENIENT, extract_answer
from rstar2cli.grading.grade import Grader


def read(name: str) -> list[dict[str, str | bool]]:
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


PAIRS, RESPONSES = read("pairs.jsonl"), read("responses.jsonl")


@pytest.mark.parametrize("row", PAIRS, ids=lambda row: f"{row['gold']}~{row['pred']}")
def test_the_verdict(grader: Grader, row: dict[str, str | bool]) -> None:
    result = grader.compare(str(row["pred"]), str(row["gold"]))
    assert result.verdict == ("correct" if row["expected"] else "wrong")


@pytest.mark.parametrize("row", RESPONSES, ids=lambda row: f"{row['gold']}~{row['pred']}")
def test_the_verdict_on_a_response(grader: Grader, row: dict[str, str | bool]) -> None:
    answer = extract_answer(str(row["pred"]), LENIENT)
    correct = answer is not None and grader.compare(answer, str(row["gold"])).verdict == "correct"
    assert correct == row["expected"]


@pytest.mark.parametrize(
    "gold, answer, reason",
    [
        (r"7 \bmod 0", "1", "gold_unparseable"),
        ("1", r"7 \bmod 0", "unparseable"),
        (r"\begin{pmatrix}1&2\end{pmatrix}^2", "1", "gold_unparseable"),
        (r"\sqrt{2}", r"\begin{pmatrix}1&2\end{pmatrix}^2", "unparseable"),
        (r"\sqrt{2}", r"\sqrt{", "unparseable"),
        (r"\sqrt{2}", r"x^{200000}", "over_cap"),
        (r"p\lor q", r"p\land q", "gold_unparseable"),
        (r"\vec{u}\times\vec{v}", r"\vec{u}\cdot\vec{v}", "gold_unparseable"),
        (r"\nabla\times F", r"\nabla\cdot F", "gold_unparseable"),
        (r"A^{-1}B", r"BA^{-1}", "gold_unparseable"),
        (
            r"The eigenvalues are: $\{1\} \leftrightarrow 2$",
            r"The eigenvalues are: $\{1\} \leftrightarrow 3$",
            "gold_unparseable",
        ),
    ],
)
def test_nonsense_is_laid_at_the_right_door(grader: Grader, gold: str, answer: str, reason: str) -> None:
    assert grader.compare(answer, gold).reason == reason
