"""Golds put to the test: each must be its own answer, and two different ones must not be each other's."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from rstar2cli.answers import kinds
from rstar2cli.answers.extract import extract_answer
from rstar2cli.answers.spelling import clean, key
from rstar2cli.answers.values import Number
from rstar2cli.grading.grade import Grader
from rstar2cli.records import Problem

PAIRS = 20_000


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A gold that can't serve as one."""

    problem: Problem
    fault: str
    """What fails: `empty`, `extraction`, `answer_kind`, `unparseable`, `over_cap`, `not_itself`, `limit`."""


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """Two golds that are written differently and accepted for each other."""

    gold: Problem
    answer: Problem


def faulty_golds(
    problems: Sequence[Problem], grader: Grader, on_done: Callable[[int], None] = lambda _: None
) -> Iterator[Fault]:
    """Golds that fail as their own answer, with the identity path off."""
    with ThreadPoolExecutor(4) as threads:
        for done, (problem, fault) in enumerate(
            zip(problems, threads.map(lambda p: gold_fault(p, grader), problems), strict=True), 1
        ):
            on_done(done)
            if fault is not None:
                yield Fault(problem=problem, fault=fault)


def accepted_pairs(
    problems: Sequence[Problem],
    grader: Grader,
    *,
    seed: int = 0,
    pairs: int = PAIRS,
    on_done: Callable[[int], None] = lambda _: None,
) -> Iterator[Accepted]:
    """Of ``pairs`` seeded pairs of golds with distinct normal forms, those of which one is accepted for the other."""
    forms = [normal_form(problem.answer) for problem in problems]
    if len(set(forms)) < 2:
        return
    draw = random.Random(seed)

    def drawn() -> Iterator[tuple[Problem, Problem]]:
        made = 0
        while made < pairs:
            i, j = draw.randrange(len(problems)), draw.randrange(len(problems))
            if forms[i] != forms[j]:
                made += 1
                yield problems[i], problems[j]

    def same(pair: tuple[Problem, Problem]) -> bool:
        gold, answer = pair
        return grader.compare(answer.answer, gold.answer, gold.answer_kind).verdict == "correct"

    listed = set()
    with ThreadPoolExecutor(4) as threads:
        chosen = list(drawn())
        for done, (pair, accepted) in enumerate(zip(chosen, threads.map(same, chosen), strict=True), 1):
            on_done(done)
            golds = (pair[0].answer, pair[1].answer)
            if accepted and golds not in listed:
                listed.add(golds)
                yield Accepted(gold=pair[0], answer=pair[1])


def normal_form(gold: str) -> str:
    """What distinguishes golds without algebra: a number's exact value, else the cleaned text."""
    cleaned = clean(gold)
    value = kinds.read_gold(gold)
    return f"{value.value.numerator}/{value.value.denominator}" if isinstance(value, Number) else key(cleaned)


def gold_fault(problem: Problem, grader: Grader) -> str | None:
    """Why a gold is not accepted as its own answer; null if it is."""
    gold = problem.answer
    if not gold.strip():
        return "empty"
    extracted = extract_answer(f"<answer>\\boxed{{{gold}}}</answer>")
    if extracted != gold.strip():
        return "extraction"
    if len(gold) > kinds.MAX_CHARS:
        return "over_cap"
    if not kinds.fits(gold, problem.answer_kind):
        return "answer_kind"
    result = grader.compare(extracted, gold, problem.answer_kind, identity=False)
    if result.verdict == "correct":
        return None
    return {"gold_unparseable": "unparseable", "different": "not_itself"}.get(result.reason or "", result.reason)
