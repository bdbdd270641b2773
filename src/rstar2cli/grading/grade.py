"""The only way to a reward: a model's text and the gold → verdict, reason, reward.

Most answers are settled by reading, in the calling thread, in microseconds. What needs algebra goes
to ``Workers``: killable processes, started when first needed.
"""

from __future__ import annotations

import atexit
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType

from rstar2cli.answers.algebra import NeedsAlgebra
from rstar2cli.answers.equivalence import Comparison, Reason, compare
from rstar2cli.answers.extract import STRICT, Extraction, extract_answer
from rstar2cli.answers.policy import DEFAULT, Policy
from rstar2cli.grading.config import GradingConfig
from rstar2cli.grading.workers import Workers
from rstar2cli.records import AnswerKind, Finish, Verdict

_CUT: tuple[Finish, ...] = ("length", "tool_overflow")
"""Ends at which the model was stopped in the middle of its work."""

BY_CLOCK: tuple[Reason, ...] = ("limit", "checker_lost")
"""Reasons that another run of the same answer need not have."""


@dataclass(frozen=True, kw_only=True)
class Grade:
    """Verdict on one answer."""

    answer: str | None
    """The extracted answer; null if there is none."""
    verdict: Verdict
    """`correct`, `wrong` (the model's doing) or `undecided` (ours)."""
    reason: Reason | None
    """Why it is wrong or undecided; null if correct."""


class Grader:
    """Grades from any number of threads at once, and from asyncio through ``submit``."""

    def __init__(
        self, *, policy: Policy = DEFAULT, extraction: Extraction = STRICT, workers: Workers | None = None
    ) -> None:
        """``workers``: processes for algebra, which :meth:`close` ends; by default one a CPU, at most 8."""
        self.policy, self.extraction = policy, extraction
        self._workers = Workers() if workers is None else workers
        self._lock = threading.Lock()
        self._threads: ThreadPoolExecutor | None = None

    def start(self) -> None:
        """Begin to load what algebra needs, without waiting for it."""
        self._workers.start()

    def ready(self) -> None:
        """Wait until algebra can be done."""
        self._workers.ready()

    def grade(self, text: str, gold: str, answer_kind: AnswerKind | None, *, finish: Finish = "stop") -> Grade:
        """Grade the model's own text of the last turn (mask = 1 tokens, decoded).

        An answer that is missing, cut off or unreadable is wrong; only a gold that can't be read, a
        checker that fails or a lost trajectory is undecided. Never raises for what the model wrote.
        ``answer_kind`` null: whatever the gold reads as.
        """
        return self.submit(text, gold, answer_kind, finish=finish).result()

    def compare(
        self, answer: str, gold: str, answer_kind: AnswerKind | None = None, *, identity: bool = True
    ) -> Comparison:
        """Compare an answer that is extracted already; see :func:`~rstar2cli.answers.equivalence.compare`."""
        try:
            return compare(answer, gold, answer_kind, policy=self.policy, identity=identity)
        except NeedsAlgebra:
            return self._workers.compare(answer, gold, answer_kind, self.policy, identity=identity)

    def submit(self, text: str, gold: str, answer_kind: AnswerKind | None, *, finish: Finish = "stop") -> Future[Grade]:
        """:meth:`grade` without waiting: done at once if reading settles it, else when a worker answers."""
        answer = extract_answer(text, self.extraction)
        settled = self._settled(answer, gold, answer_kind, finish)
        if settled is not None:
            done: Future[Grade] = Future()
            done.set_result(Grade(answer=answer, verdict=settled.verdict, reason=settled.reason))
            return done
        assert answer is not None
        return self._executor().submit(self._by_algebra, answer, gold, answer_kind)

    def submit_answer(self, answer: str, gold: str, answer_kind: AnswerKind | None) -> Future[Grade]:
        """:meth:`submit` for an answer that is extracted already."""
        try:
            result = compare(answer, gold, answer_kind, policy=self.policy)
        except NeedsAlgebra:
            return self._executor().submit(self._by_algebra, answer, gold, answer_kind)
        done: Future[Grade] = Future()
        done.set_result(Grade(answer=answer, verdict=result.verdict, reason=result.reason))
        return done

    def close(self) -> None:
        """End the workers, after what is under way."""
        with self._lock:
            threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown()
        self._workers.close()

    def __enter__(self) -> Grader:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def _settled(self, answer: str | None, gold: str, kind: AnswerKind | None, finish: Finish) -> Comparison | None:
        """The verdict as far as reading goes; null if algebra must decide."""
        if finish == "lost":
            return Comparison(verdict="undecided", reason="lost")
        try:
            result = compare(answer or "", gold, kind, policy=self.policy)
        except NeedsAlgebra:
            return None
        if answer is None and result.verdict != "undecided":
            return Comparison(verdict="wrong", reason="cut_off" if finish in _CUT else "no_answer")
        return result

    def _by_algebra(self, answer: str, gold: str, kind: AnswerKind | None) -> Grade:
        result = self._workers.compare(answer, gold, kind, self.policy)
        return Grade(answer=answer, verdict=result.verdict, reason=result.reason)

    def _executor(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self._workers.count, thread_name_prefix="grading")
            return self._threads


def reward(grade: Grade) -> float | None:
    """1 for correct, 0 for wrong, null for undecided (the trajectory leaves its group)."""
    return {"correct": 1.0, "wrong": 0.0, "undecided": None}[grade.verdict]


_workers: Workers | None = None
_workers_lock = threading.Lock()


def shared_workers() -> Workers:
    """The process's own workers, which end with it."""
    global _workers
    with _workers_lock:
        if _workers is None:
            _workers = Workers()
            atexit.register(_workers.close)
        return _workers


def shared_grader(config: GradingConfig) -> Grader:
    """A grader of this configuration on the process's own workers: nothing to close."""
    return Grader(policy=config.policy, extraction=Extraction(fallbacks=config.fallbacks), workers=shared_workers())
