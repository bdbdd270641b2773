"""Where calls and sessions run: user ids and control groups, handed out, taken back and mended."""

from __future__ import annotations

from rstar2cli.sandbox.inside.body import Place
from rstar2cli.sandbox.inside.limits import Settings
from rstar2cli.sandbox.inside.walls import Walls

_OURS = 8
"""Processes of one keeper that are no call's: itself and its warm ones, with some room."""


class Places:
    """Calls and sessions have places apart: the user id of a living session is nobody else's."""

    def __init__(self, settings: Settings, walls: Walls) -> None:
        self._settings, self._walls = settings, walls
        made = [self._make(number) for number in range(settings.places + settings.sessions)]
        self._calls, self._sessions = made[: settings.places], made[settings.places :]
        self._sessions_places = set(map(id, self._sessions))

    def take_for_call(self) -> Place:
        """A free place; the keeper starts no more calls than there are."""
        return self._ready(self._calls.pop())

    def take_for_session(self) -> Place:
        """A free place; the host opens no more sessions than there are."""
        return self._ready(self._sessions.pop())

    def give_back(self, place: Place) -> None:
        """Nothing runs in it any more."""
        (self._sessions if id(place) in self._sessions_places else self._calls).append(place)

    def mend(self, place: Place) -> None:
        """Make its group again if somebody has removed it."""
        if place.group is not None and not place.group.alive():
            place.group.close()
            place.group = None

    def process_limit(self) -> int | None:
        """Limit on the processes of the user, where no group counts those of a call.

        With one user for all it counts all calls together, and first processes and our own with them.
        """
        if self._walls.groups is not None:
            return None
        each = self._settings.processes
        if "user ids" in self._walls.present:
            return each
        if self._walls.isolated:
            return _OURS + (self._settings.places + self._settings.sessions) * 2 + self._settings.places * each
        return None

    def close(self) -> None:
        """Remove the groups."""
        for place in (*self._calls, *self._sessions):
            if place.group is not None:
                place.group.close()
        if self._walls.groups is not None:
            self._walls.groups.close()

    def _make(self, number: int) -> Place:
        uid = self._settings.first_uid + number if "user ids" in self._walls.present else None
        return Place(name=f"place-{number}", uid=uid, group=None)

    def _ready(self, place: Place) -> Place:
        """Groups are made when they are first needed: there may be many sessions, or none."""
        if self._walls.groups is not None and place.group is None:
            place.group = self._walls.groups.group(place.name)
        return place
