"""Progress on stderr: a bar on a terminal, else a line every 30 s; on rank 0 only.

``--verbose`` asks for a line every second on both: a bar would be torn by what else is told.
"""

from __future__ import annotations

import sys
import time

from rstar2cli.cli.say import say
from rstar2cli.core import process
from rstar2cli.core.progress import Progress, ProgressFn, silent

LINE_EVERY_S = 30.0
VERBOSE_EVERY_S = 1.0
BAR_EVERY_S = 0.2
_BAR_WIDTH = 24


def reporter(*, quiet: bool, verbose: bool = False) -> ProgressFn:
    """The callback for this process and terminal."""
    if quiet or not process.ranks().main:
        return silent
    if verbose:
        return _Lines(VERBOSE_EVERY_S)
    return _Bar() if sys.stderr.isatty() else _Lines(LINE_EVERY_S)


def describe(progress: Progress) -> str:
    """``rollout 12/64 rows  reward 0.31  tokens_per_s 412``."""
    total = "" if progress.total is None else f"/{progress.total}"
    info = "".join(f"  {name} {_number(value)}" for name, value in progress.info.items())
    return f"{progress.task} {progress.done}{total} {progress.unit}{info}"


def _number(value: float | int | str) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _always(progress: Progress) -> bool:
    """Whether a report is told whenever it comes: the end of a task, a landmark."""
    finished = progress.total is not None and progress.done >= progress.total
    return progress.landmark or (finished and not progress.detail)


class _Lines:
    """For logs: the first report, one every so many seconds, and the last of each task."""

    def __init__(self, every: float) -> None:
        self._every = every
        self._last: dict[str, float] = {}

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if progress.detail:
            due = self._last.get("", now)  # since the last line of any task
        else:
            due = self._last.get(progress.task, now - self._every)
        if not _always(progress) and now - due < self._every:
            return
        self._last[progress.task] = self._last[""] = now
        say(describe(progress))


class _Bar:
    """For people: one line, drawn again in place."""

    def __init__(self) -> None:
        self._last = 0.0
        self._task = ""

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        finished = _always(progress)
        if not finished and progress.task == self._task and now - self._last < BAR_EVERY_S:
            return
        self._last, self._task = now, progress.task
        bar = ""
        if progress.total:
            full = min(_BAR_WIDTH, _BAR_WIDTH * progress.done // progress.total)
            bar = "█" * full + "░" * (_BAR_WIDTH - full) + " "
        end = "\n" if finished else ""
        say(f"\r\x1b[2K{bar}{describe(progress)}", end=end)
