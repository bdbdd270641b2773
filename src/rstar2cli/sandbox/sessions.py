"""Sessions as their users see them: ids, the order of cells, each at most once, and how they end.

Belongs to the thread of its sandbox; the processes belong to the keepers.
"""

from __future__ import annotations

import secrets
import signal
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from rstar2cli.sandbox.config import SandboxConfig
from rstar2cli.sandbox.crew import Crew, Message
from rstar2cli.sandbox.decide import Granted, outcome_of
from rstar2cli.sandbox.outcome import Outcome, SandboxRefused

_ID_BYTES = 16


@dataclass
class _Cell:
    message: Message
    limits: Granted
    futures: list[Future[Outcome]]

    @property
    def number(self) -> int:
        return int(self.message["cell"])


@dataclass
class _Session:
    name: str
    crew: Crew
    seed: int
    opened: float
    used: float
    next: int = 0
    """Number of the next cell that may come."""
    running: _Cell | None = None
    waiting: deque[_Cell] = field(default_factory=deque)
    last: Outcome | None = None
    """Outcome of the last cell that was executed; its number is one below that of the oldest that was not."""
    last_number: int = -1
    ended: Outcome | None = None
    """What later cells get, once its process has ended."""


class Sessions:
    """All sessions of one sandbox."""

    def __init__(self, config: SandboxConfig, crews: Sequence[Crew], count: Callable[[Outcome], None]) -> None:
        """``count`` is told every outcome of a cell that was executed."""
        self._config, self._crews, self._count = config, crews, count
        self._sessions: dict[str, _Session] = {}
        for crew in crews:
            crew.gone = self._gone
            crew.died = lambda crew=crew: self._all_lost(crew)  # type: ignore[misc]

    @property
    def open_now(self) -> int:
        """Sessions that have a process."""
        return sum(crew.sessions for crew in self._crews)

    def open(self, message: Message, seed: int, future: Future[str]) -> None:
        """Open one with the keeper that has most room."""
        if not future.set_running_or_notify_cancel():
            return
        crew = max(self._crews, key=lambda crew: crew.session_places - crew.sessions)
        if crew.sessions >= crew.session_places:
            future.set_exception(SandboxRefused("overloaded", f"{self._config.sessions} sessions are open"))
            return
        name = secrets.token_hex(_ID_BYTES)
        now = time.monotonic()
        session = _Session(name=name, crew=crew, seed=seed, opened=now, used=now)

        def answered(reply: Message | None, why: str) -> None:
            if reply is None:
                future.set_exception(SandboxRefused("lost", why))
            elif reply["opened"] is not None:
                future.set_exception(SandboxRefused("setup_failed", reply["opened"]))
            else:
                self._sessions[name] = session
                future.set_result(name)

        crew.sessions += 1
        crew.ask({**message, "session": name}, answered)

    def run(self, name: str, message: Message, limits: Granted, future: Future[Outcome]) -> None:
        """Execute a cell now, after those before it, or not at all."""
        session = self._sessions.get(name)
        if not future.set_running_or_notify_cancel():
            return
        if session is None:
            future.set_result(Outcome(kind="lost", detail="no such session: lost, closed or expired"))
            return
        number = message["cell"]
        session.used = time.monotonic()
        for cell in (session.running, *session.waiting):
            if cell is not None and cell.number == number:
                cell.futures.append(future)
                return
        if number == session.last_number and session.last is not None:
            future.set_result(session.last)
        elif number != session.next:
            detail = f"cell {number} is out of order: {session.next} is the next, and none is executed twice"
            future.set_result(Outcome(kind="lost", detail=detail))
        else:
            session.next += 1
            session.waiting.append(_Cell(message, limits, [future]))
            self._advance(session)

    def close(self, name: str) -> None:
        """End a session."""
        session = self._sessions.pop(name, None)
        if session is not None:
            self._forget(session, "the session was closed")

    def expire(self) -> None:
        """Close what was idle, or has lived, for too long."""
        now = time.monotonic()
        for session in list(self._sessions.values()):
            busy = session.running is not None
            idle = not busy and now - session.used > self._config.session_idle_s
            if idle or now - session.opened > self._config.session_total_s:
                self.close(session.name)

    def _advance(self, session: _Session) -> None:
        while session.running is None and session.waiting:
            cell = session.waiting.popleft()
            session.running = cell
            if session.ended is not None:
                self._finish(session, cell, session.ended)
                continue
            message = {**cell.message, "session": session.name}
            if cell.number == 0:
                message["seed"] = session.seed
            session.crew.ask(message, self._answer(session, cell))

    def _answer(self, session: _Session, cell: _Cell) -> Callable[[Message | None, str], None]:
        def answered(reply: Message | None, why: str) -> None:
            if reply is None:
                outcome = Outcome(kind="lost", detail=why)
            else:
                outcome = outcome_of(reply["result"], cell.limits)
                if reply["result"]["ended"]:
                    self._end(session, outcome, cell.number)
            self._count(outcome)
            self._finish(session, cell, outcome)
            self._advance(session)

        return answered

    def _finish(self, session: _Session, cell: _Cell, outcome: Outcome) -> None:
        session.running = None
        session.last, session.last_number = outcome, cell.number
        session.used = time.monotonic()
        for future in cell.futures:
            future.set_result(outcome)

    def _end(self, session: _Session, outcome: Outcome, number: int) -> None:
        """The process ended with this cell: by its code's doing, which later cells are told, or not."""
        if session.ended is not None:
            return
        if outcome.infrastructure:
            session.ended = Outcome(kind="lost", detail=f"the session was lost in cell {number}: {outcome.detail}")
        else:
            session.ended = _told(f"cell {number} ended it ({_words(outcome)})")

    def _gone(self, message: Message) -> None:
        """A keeper says that nothing is left of a session."""
        session = self._sessions.get(message["gone"])
        message["crew"].sessions -= 1
        if session is None or session.ended is not None:
            return
        if message["fault"] is not None:
            session.ended = _told(message["fault"])
        elif message["failure"] is None and message["status"] not in (None, int(signal.SIGKILL)):
            session.ended = _told("its process ended by itself between cells")
        else:
            detail = message["failure"] or "killed from outside of the sandbox"
            session.ended = Outcome(kind="lost", detail=f"the session was lost between cells: {detail}")

    def _all_lost(self, crew: Crew) -> None:
        crew.sessions = 0
        for session in [session for session in self._sessions.values() if session.crew is crew]:
            del self._sessions[session.name]
            self._forget(session, "the session was lost with its keeper")

    def _forget(self, session: _Session, why: str) -> None:
        """Answer what waits; the cell that runs is answered by the keeper, or for it."""
        session.ended = session.ended or Outcome(kind="lost", detail=why)
        session.crew.tell({"op": "close", "session": session.name})
        waiting, session.waiting = session.waiting, deque()
        for cell in waiting:
            for future in cell.futures:
                future.set_result(session.ended)


def _told(why: str) -> Outcome:
    """For the model: what became of the state that its cell builds on."""
    return Outcome(kind="error", error=f"SessionEnded: {why}; its state is gone")


def _words(outcome: Outcome) -> str:
    if outcome.kind == "exit":
        return f"exit status {outcome.exit_code}"
    if outcome.kind == "signal":
        return f"signal {outcome.signal}"
    return f"{outcome.kind.replace('_', ' ')} {outcome.limit or ''}".strip()
