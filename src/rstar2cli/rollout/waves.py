"""Deterministic mode: waves of trajectories in lockstep by turn.

A wave always has the same number of rows; one that is done, or was never there, stays as an
empty row. Tools of a turn run together and all are awaited. So a wave depends on its own
seeds alone, and a run that is resumed at a wave's boundary ends the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from rstar2cli.core import drain
from rstar2cli.engines.base import Engine
from rstar2cli.rollout.episode import Episode, ToolWork
from rstar2cli.rollout.tools import ToolRunner

Item = TypeVar("Item")


def waves_of(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Consecutive lists of ``size`` items; the last may be shorter."""
    source = iter(items)
    while wave := list(islice(source, size)):
        yield wave


def run_wave(episodes: Sequence[Episode], engine: Engine, tools: ToolRunner, *, rows: int) -> None:
    """Run a wave of at most ``rows`` episodes to their end. Raises ``Stopped`` between turns if asked to."""
    padding = [None] * (rows - len(episodes))
    while any(episode.finish is None for episode in episodes):
        drain.check("the wave under way is given up")
        requests = [episode.request() if episode.finish is None else None for episode in episodes]
        completions = engine.generate_wave([*requests, *padding])
        work = [
            (episode, episode.on_completion(completion))
            for episode, completion in zip(episodes, completions, strict=False)
            if completion is not None
        ]
        _run_tools([(episode, calls) for episode, calls in work if calls is not None], tools)


def _run_tools(work: Sequence[tuple[Episode, ToolWork]], tools: ToolRunner) -> None:
    started = [
        (episode, [tools.start(call, seed) for call, seed in zip(calls.calls, calls.seeds, strict=True)])
        for episode, calls in work
    ]
    for episode, futures in started:
        episode.on_results([future.result() for future in futures])
