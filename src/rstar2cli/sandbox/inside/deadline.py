"""Time limits of what runs: the wall clock, and CPU and memory of all its processes together."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from rstar2cli.sandbox.inside import census
from rstar2cli.sandbox.inside.body import Body
from rstar2cli.sandbox.inside.loop import Loop, Timer

PATIENCE = 3
"""What gets no core is ended at the latest after this many times its wall limit."""
_CENSUS_S = 0.1


@dataclass(frozen=True)
class Allowance:
    """What one call or cell may use."""

    wall_s: float
    cpu_s: float
    memory_bytes: int


class Deadline:
    """Watches one call or cell from its start; tells ``met`` which limit was met first."""

    def __init__(self, loop: Loop, body: Body, allowance: Allowance, met: Callable[[str], None]) -> None:
        self._loop, self._body, self._allowance, self._met = loop, body, allowance, met
        self._timer: Timer | None = None
        self._started = self._until = 0.0
        self._waited_before = self.cpu_before = 0.0
        self._count_always = False

    def start(self, *, cpu_before: float | None = None) -> None:
        """Begin to count; ``cpu_before``: CPU time that was charged to earlier cells, where there may be any."""
        self._started = time.monotonic()
        self._until = self._started + self._allowance.wall_s
        self._count_always = cpu_before is not None or self._body.place.group is None
        self.cpu_before = cpu_before or 0.0
        # a new process has not waited for anything yet
        self._waited_before = 0.0 if cpu_before is None else census.waited_s(self._body.pid)
        self._next()

    def stop(self) -> None:
        """Count no more."""
        if self._timer is not None:
            self._timer.cancel()

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return time.monotonic() - self._started if self._started else 0.0

    def waited_s(self) -> float:
        """Of it, time that the first thread stood ready without a core."""
        return census.waited_s(self._body.pid) - self._waited_before if self._body.pid else 0.0

    def _next(self) -> None:
        self._timer = self._loop.later(min(self._until, time.monotonic() + _CENSUS_S), self._check)

    def _check(self) -> None:
        now = time.monotonic()
        if now >= self._until:
            self._until = self._extended(now)
            if now >= self._until:
                self._met("timeout")
                return
        pids = census.family(self._body.roots)
        if len(pids) > len(self._body.roots) or self._count_always:
            limit = self._over(pids)
            if limit:
                self._met(limit)
                return
        self._next()

    def _over(self, pids: list[int]) -> str | None:
        if census.cpu_seconds(pids) - self.cpu_before > self._allowance.cpu_s:
            return "cpu"
        if self._body.place.group is None:
            used = census.memory_bytes(pids, self._body.warm.resident)
            if used > self._allowance.memory_bytes:
                return "memory"
        return None

    def _extended(self, now: float) -> float:
        """More time for what got no core for over half of it: an endless loop on a busy machine is a timeout still."""
        waited = self.waited_s()
        if waited <= (now - self._started) / 2:
            return now
        wall_s = self._allowance.wall_s
        return min(self._started + waited + wall_s, self._started + PATIENCE * wall_s)
