from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from rstar2cli.answers.extract import LENIENT
from rstar2cli.grading.grade import Grader, reward
from rstar2cli.records import Finish

MIXED = [
    ("4", "4", "correct"),
    ("5", "4", "wrong"),
    (r"\frac{2}{\sqrt{2}}", r"\sqrt{2}", "correct"),
    (r"(x-1)(x+1)", "x^2-1", "correct"),
    (r"(x-1)(x+2)", "x^2-1", "wrong"),
    (r"1, \sqrt{4}", r"\{2, 1\}", "correct"),
    (r"\int_0^\infty \sin(x^x) e^{\sin(x^9)} dx", "x+x", "undecided"),
    ("9^{9^{9^9}}", "4", "wrong"),
]
"""(answer, gold, verdict); the undecided one runs into the limit of a worker."""


@pytest.mark.parametrize(
    "text, finish, verdict, reason, points",
    [
        (r"</reason><answer>\boxed{4}</answer>", "stop", "correct", None, 1.0),
        (r"<answer>\boxed{4}</answer> and on and on", "length", "correct", None, 1.0),
        (r"<answer>\boxed{\sqrt{16}}</answer>", "stop", "correct", None, 1.0),
        (r"<answer>\boxed{5}</answer>", "stop", "wrong", "different", 0.0),
        (r"<answer>\boxed{4 or 5}</answer>", "stop", "wrong", "hedged", 0.0),
        (r"<answer>\boxed{4", "length", "wrong", "cut_off", 0.0),
        (r"thinking", "tool_overflow", "wrong", "cut_off", 0.0),
        (r"<answer>4</answer>", "stop", "wrong", "no_answer", 0.0),
        (r"<answer>\boxed{}</answer>", "stop", "wrong", "no_answer", 0.0),
        (r"", "turn_limit", "wrong", "no_answer", 0.0),
        (r"<answer>\boxed{4}</answer>", "lost", "undecided", "lost", None),
    ],
)
def test_grades(
    grader: Grader, text: str, finish: Finish, verdict: str, reason: str | None, points: float | None
) -> None:
    result = grader.grade(text, "4", "integer", finish=finish)
    assert (result.verdict, result.reason, reward(result)) == (verdict, reason, points)


def test_an_unreadable_gold_is_never_the_models_fault(grader: Grader) -> None:
    for text in (r"<answer>\boxed{4}</answer>", "no answer at all"):
        result = grader.grade(text, "see figure", "integer")
        assert (result.verdict, result.reason, reward(result)) == ("undecided", "gold_unparseable", None)
    result = grader.grade(r"<answer>\boxed{4}</answer>", r"\bigcup_{k} (k, k+1)", "expression")
    assert (result.verdict, result.reason) == ("undecided", "gold_unparseable")


def test_what_takes_too_long_is_undecided_and_says_so(grader: Grader) -> None:
    answer, gold, _ = MIXED[6]
    result = grader.compare(answer, gold)
    assert (result.verdict, result.reason) == ("undecided", "limit")


def test_sixteen_threads_agree_with_one_while_a_row_hangs(grader: Grader) -> None:
    rows = MIXED * 8
    with ThreadPoolExecutor(16) as threads:
        found = list(threads.map(lambda row: grader.compare(row[0], row[1]).verdict, rows))
    assert found == [verdict for _, _, verdict in rows]


def test_from_asyncio_the_loop_goes_on(grader: Grader) -> None:
    async def judged(answer: str, gold: str) -> str:
        return (await asyncio.wrap_future(grader.submit_answer(answer, gold, None))).verdict

    async def all_of_them() -> tuple[list[str], int]:
        beats = 0

        async def beat() -> None:
            nonlocal beats
            while True:
                beats += 1
                await asyncio.sleep(0.01)

        heart = asyncio.create_task(beat())
        found = await asyncio.gather(*(judged(answer, gold) for answer, gold, _ in MIXED))
        heart.cancel()
        return found, beats

    found, beats = asyncio.run(all_of_them())
    assert found == [verdict for _, _, verdict in MIXED]
    assert beats > 5  # one row took its whole limit


def test_a_lenient_grader_reads_texts_of_other_models() -> None:
    with Grader(extraction=LENIENT) as lenient:
        result = lenient.grade(r"so it is \boxed{\sqrt 2}", r"\frac{2}{\sqrt{2}}", None)
        assert (result.answer, result.verdict) == (r"\sqrt 2", "correct")
