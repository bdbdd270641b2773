"""One keeper with what it has been asked and not answered. Belongs to the thread of its sandbox."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rstar2cli.sandbox.inside.limits import Settings
from rstar2cli.sandbox.keeper import Keeper, KeeperFailed

Message = dict[str, Any]
Answer = Callable[[Message | None, str], None]
"""Told the answer, or null and why there is none."""
_AHEAD = 2
"""Calls that a keeper is sent before it has a place for them, so that none stands empty."""
_SILENCE_S = 90.0
"""Past three times the longest wall limit asked for, silence for so long means that the keeper is stuck."""


@dataclass
class _Asked:
    answer: Answer
    wall_s: float


class Crew:
    """A keeper, replaced when it dies."""

    def __init__(self, settings: Settings) -> None:
        """Raises :class:`KeeperFailed` if it does not come up."""
        self._settings = settings
        self._numbers = itertools.count()
        self._asked: dict[int, _Asked] = {}
        self._heard = time.monotonic()
        self.keeper: Keeper | None = Keeper(settings)
        self.runs = 0
        """Calls and cells that it was sent and has not answered."""
        self.restarts = 0
        self.sessions = 0
        """Sessions that it has."""
        self.warm = self.warm_restarts = 0
        """Warm processes that are loaded, and how often one was started again."""
        self.gone: Callable[[Message], None] = lambda message: None
        """Told of a session that has ended."""
        self.died: Callable[[], None] = lambda: None
        """Told that the keeper died, with all its sessions."""

    @property
    def free(self) -> int:
        """Calls that it can be sent."""
        return self._settings.places + _AHEAD - self.runs

    @property
    def places(self) -> int:
        """Calls that it runs at once."""
        return self._settings.places

    @property
    def session_places(self) -> int:
        """Sessions that it can have."""
        return self._settings.sessions

    def ask(self, message: Message, answer: Answer) -> None:
        """Send a message that will be answered, once."""
        number = next(self._numbers)
        run = message["op"] in ("call", "cell")

        def answered(reply: Message | None, why: str) -> None:
            self.runs -= run
            answer(reply, why)

        try:
            keeper = self._alive()
        except KeeperFailed as error:
            answer(None, str(error))
            return
        self.runs += run
        if not self._asked:
            self._heard = time.monotonic()
        self._asked[number] = _Asked(answered, message.get("wall_s", 0.0))
        keeper.send({**message, "id": number})

    def tell(self, message: Message) -> None:
        """Send a message that has no answer."""
        if self.keeper is not None:
            self.keeper.send(message)

    def read(self) -> None:
        """Deal with what has come."""
        if self.keeper is None:
            return
        messages = self.keeper.read()
        if messages is None:
            self._bury()
            return
        self._heard = time.monotonic()
        for message in messages:
            if "gone" in message:
                self.gone({**message, "crew": self})
            elif "warm" in message:
                self.warm, self.warm_restarts = message["warm"], message["restarts"]
            else:
                self._asked.pop(message["id"]).answer(message, "")

    def look_after(self) -> None:
        """End a keeper that is stuck. What it ran is lost, but nobody waits for ever."""
        if self.keeper is None or not self._asked:
            return
        patience = _SILENCE_S + 3 * max(asked.wall_s for asked in self._asked.values())
        if time.monotonic() - self._heard > patience:
            self.keeper.kill()
            self._bury()

    def close(self) -> None:
        """End it, and answer for it."""
        keeper, self.keeper = self.keeper, None
        if keeper is not None:
            keeper.close()
        self._give_up("the sandbox is closed")

    def _alive(self) -> Keeper:
        if self.keeper is None:
            self.keeper = Keeper(self._settings)
            self.restarts += 1
        return self.keeper

    def _bury(self) -> None:
        keeper, self.keeper = self.keeper, None
        assert keeper is not None
        words = keeper.last_words()
        keeper.close()
        self.died()
        self._give_up(f"the sandbox's keeper died. {words}".strip())

    def _give_up(self, why: str) -> None:
        asked, self._asked = self._asked, {}
        for one in asked.values():
            one.answer(None, why)
