"""Room for calls in a service: so many accepted and not finished, the rest refused at once or made to wait in line.

Used in the event loop's thread only.
"""

from __future__ import annotations

import asyncio
from collections import deque


class NoRoom(Exception):
    """There is no room now."""


class Room:
    """A number of places that calls take and give back."""

    def __init__(self, places: int) -> None:
        """``places``: calls at once."""
        self.places = places
        self.taken = 0
        self._line: deque[asyncio.Future[None]] = deque()

    @property
    def waiting(self) -> int:
        """Calls that stand in line."""
        return sum(not place.done() for place in self._line)

    def take(self, count: int = 1) -> None:
        """Take places, all or none. Raises ``NoRoom``; those who wait in line come first."""
        if self.taken + count > self.places or self._line:
            raise NoRoom
        self.taken += count

    async def wait(self, seconds: float) -> None:
        """Take one place as soon as it is this caller's turn. Raises ``NoRoom`` when the time is over."""
        if self.taken < self.places and not self._line:
            self.taken += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._line.append(turn)
        try:
            async with asyncio.timeout(seconds):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                self.give_back()  # it was given in the very moment that the caller left
            elif turn in self._line:
                self._line.remove(turn)
            if isinstance(error, TimeoutError):
                raise NoRoom from None
            raise

    def give_back(self) -> None:
        """Give a place back, to the first in line if there is one."""
        while self._line:
            turn = self._line.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self.taken -= 1
