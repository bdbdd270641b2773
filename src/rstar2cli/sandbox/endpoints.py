"""Several services as one: who gets the next call, who is down, and when it is tried again.

Used in one thread only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0


@dataclass(eq=False)
class Endpoint:
    """One service."""

    address: str
    """Without a slash at its end."""
    outstanding: int = 0
    """Calls sent and not answered."""
    failures: int = 0
    """Failures in a row."""
    down_until: float = 0.0
    """Time (of the clock) before which it is not tried; 0 = it works."""
    trouble: str = ""
    """Its last failure."""


@dataclass
class Endpoints:
    """All of them."""

    all: list[Endpoint]
    clock: Callable[[], float] = field(default=time.monotonic)

    def best(self, tried: Collection[Endpoint] = ()) -> Endpoint | None:
        """The one with the least outstanding calls that works and is not among ``tried``; null if there is none."""
        now = self.clock()
        able = [e for e in self.all if e not in tried and e.down_until <= now]
        return min(able, key=lambda e: (e.outstanding, e.failures), default=None)

    def worked(self, endpoint: Endpoint) -> None:
        """It answered."""
        endpoint.failures, endpoint.down_until, endpoint.trouble = 0, 0.0, ""

    def failed(self, endpoint: Endpoint, trouble: str) -> None:
        """It did not: leave it alone for a while, longer each time in a row."""
        now = self.clock()
        endpoint.trouble = trouble
        if endpoint.down_until > now:
            return  # one of many calls that the same failure met
        endpoint.failures += 1
        endpoint.down_until = now + min(_FIRST_PAUSE_S * 2 ** (endpoint.failures - 1), _LONGEST_PAUSE_S)

    def troubles(self) -> str:
        """What is wrong with those that are down."""
        return "; ".join(f"{e.address}: {e.trouble}" for e in self.all if e.trouble)
