"""Where a service's requests become calls: room, waiting time, metrics. Used in the event loop's thread only."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future

import msgspec

from rstar2cli.sandbox.metrics import Metrics
from rstar2cli.sandbox.outcome import Outcome, ServedSandbox
from rstar2cli.sandbox.room import NoRoom, Room

OVERLOADED = Outcome(kind="overloaded", detail="the service's queue is full")
Submit = Callable[[], "Future[Outcome]"]


class Desk:
    """The calls of one service."""

    def __init__(self, sandbox: ServedSandbox, places: int) -> None:
        """``places``: calls accepted and not finished."""
        self.sandbox = sandbox
        self.room = Room(places)
        self.metrics = Metrics(sandbox.stats, lambda: self.room.taken)

    def take(self, submits: list[Submit]) -> list[asyncio.Future[Outcome]]:
        """Start all or none. Raises ``NoRoom`` at once."""
        self.room.take(len(submits))
        arrived = time.monotonic()
        return [self._started(submit, arrived) for submit in submits]

    async def run_in_turn(self, submit: Submit, wait_s: float) -> Outcome:
        """Run one call as soon as there is room; `overloaded` if there is none for so long."""
        arrived = time.monotonic()
        try:
            await self.room.wait(wait_s)
        except NoRoom:
            self.metrics.finished(OVERLOADED)
            return OVERLOADED
        return await self._started(submit, arrived)

    def call(
        self,
        code: str,
        stdin: str = "",
        *,
        seed: int = 0,
        wall_s: float | None = None,
        memory_mib: int | None = None,
        files: Mapping[str, bytes] | None = None,
    ) -> Submit:
        """A stateless call, to be started by ``take`` or ``run_in_turn``."""
        return lambda: self.sandbox.submit(code, stdin, seed=seed, wall_s=wall_s, memory_mib=memory_mib, files=files)

    def cell(self, session: str, code: str, sequence: int) -> Submit:
        """A session's cell."""
        return lambda: self.sandbox.run_cell(session, code, sequence=sequence)

    def _started(self, submit: Submit, arrived: float) -> asyncio.Future[Outcome]:
        # shielded: a client that goes away must not cancel what may already run
        return asyncio.shield(asyncio.ensure_future(self._finish(submit, arrived)))

    async def _finish(self, submit: Submit, arrived: float) -> Outcome:
        try:
            outcome = await asyncio.wrap_future(submit())
        finally:
            self.room.give_back()
        waited = max(0.0, time.monotonic() - arrived - outcome.seconds)
        outcome = msgspec.structs.replace(outcome, waited_seconds=waited)
        self.metrics.finished(outcome)
        return outcome
