"""The asynchronous scheduler: every trajectory goes on the moment its own result is there.

One thread (the caller's) owns all episodes. Completions and tool results arrive as events;
no trajectory waits for another's turn. A new one starts as soon as the engine's cache can
hold it at its longest, so a running one is never evicted.
"""

from __future__ import annotations

import functools
import queue
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future

from rstar2cli.core import drain
from rstar2cli.engines.base import Completion, Engine
from rstar2cli.grading.grade import Grade, Grader
from rstar2cli.rollout.episode import Episode, ToolWork
from rstar2cli.rollout.tools import CallResult, ToolRunner

Event = Callable[[], None]
_POLL_S = 0.2


class Scheduler:
    """Runs episodes to their end."""

    def __init__(
        self,
        engine: Engine,
        tools: ToolRunner,
        grader: Grader,
        on_finished: Callable[[Episode, Grade], None],
        *,
        in_flight: int,
    ) -> None:
        """``on_finished`` is called in the thread of :meth:`run`; ``in_flight``: most episodes at once."""
        self._engine = engine
        self._tools = tools
        self._grader = grader
        self._on_finished = on_finished
        self._in_flight = in_flight
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._next: Episode | None = None
        self._running = 0
        self._done = 0
        self._reserved = 0

    def run(self, episodes: Iterable[Episode]) -> None:
        """Run all; an error of the engine or of ``on_finished`` ends it, as does the wish to stop (``Stopped``)."""
        source = iter(episodes)
        self._admit(source)
        while self._running:
            drain.check(f"{self._done} trajectories finished, {self._running} under way given up")
            try:
                event = self._events.get(timeout=_POLL_S)
            except queue.Empty:
                continue
            event()
            self._admit(source)

    def _admit(self, source: Iterator[Episode]) -> None:
        """Start episodes in order while the cache can hold them at their longest."""
        while self._running < self._in_flight:
            self._next = self._next or next(source, None)
            if self._next is None:
                return
            if self._reserved + self._next.reservation > self._engine.capacity_tokens and self._running:
                return  # one that is too large for the cache alone is left to the engine's refusal
            episode, self._next = self._next, None
            self._running += 1
            self._reserved += episode.reservation
            self._generate(episode)

    def _generate(self, episode: Episode) -> None:
        def arrived(future: Future[Completion]) -> None:
            self._events.put(lambda: self._completed(episode, future.result()))

        self._engine.submit(episode.request()).add_done_callback(arrived)

    def _completed(self, episode: Episode, completion: Completion) -> None:
        work = episode.on_completion(completion)
        if work is None:
            self._finished(episode)
        else:
            self._run_tools(episode, work)

    def _run_tools(self, episode: Episode, work: ToolWork) -> None:
        results: list[CallResult | None] = [None] * len(work.calls)

        def answered(place: int, future: Future[CallResult]) -> None:
            results[place] = future.result()
            arrived = [result for result in results if result is not None]
            if len(arrived) == len(results):
                episode.on_results(arrived)
                self._continue(episode)

        def post(place: int, future: Future[CallResult]) -> None:
            self._events.put(lambda: answered(place, future))

        for place, (call, seed) in enumerate(zip(work.calls, work.seeds, strict=True)):
            future = self._tools.start(call, seed)
            future.add_done_callback(functools.partial(post, place))

    def _continue(self, episode: Episode) -> None:
        if episode.finish is None:
            self._generate(episode)
        else:
            self._finished(episode)

    def _finished(self, episode: Episode) -> None:
        """Its room in the cache is free at once; grading may take a moment more."""
        self._reserved -= episode.reservation

        def arrived(future: Future[Grade]) -> None:
            self._events.put(lambda: self._graded(episode, future.result()))

        episode.grade(self._grader).add_done_callback(arrived)

    def _graded(self, episode: Episode, grade: Grade) -> None:
        self._done += 1
        self._running -= 1
        self._on_finished(episode, grade)
