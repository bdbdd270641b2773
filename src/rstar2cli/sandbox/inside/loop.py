"""The keeper's event loop: descriptors and timers."""

from __future__ import annotations

import heapq
import itertools
import os
import select
import time
from collections.abc import Callable

Callback = Callable[[], None]


class Timer:
    """A call to be made later, unless it is cancelled."""

    def __init__(self, callback: Callback) -> None:
        self.callback: Callback | None = callback

    def cancel(self) -> None:
        """Don't make the call."""
        self.callback = None


class Loop:
    """Runs callbacks in one thread until it is stopped."""

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._watched: dict[int, Callback] = {}
        self._timers: list[tuple[float, int, Timer]] = []
        self._numbers = itertools.count()
        self._running = True

    def watch(self, fd: int, callback: Callback, *, writing: bool = False) -> None:
        """Call back whenever ``fd`` can be read (or also written)."""
        events = select.EPOLLIN | (select.EPOLLOUT if writing else 0)
        if fd in self._watched:
            self._poll.modify(fd, events)
        else:
            self._poll.register(fd, events)
        self._watched[fd] = callback

    def watch_writing(self, fd: int, callback: Callback) -> None:
        """Call back whenever ``fd`` can be written."""
        self._poll.register(fd, select.EPOLLOUT)
        self._watched[fd] = callback

    def forget(self, fd: int) -> None:
        """Stop watching; a descriptor that is not watched is no error."""
        if self._watched.pop(fd, None) is not None:
            self._poll.unregister(fd)

    def close(self, fd: int) -> None:
        """Stop watching and close."""
        self.forget(fd)
        os.close(fd)

    def later(self, when: float, callback: Callback) -> Timer:
        """Call back at ``when`` (monotonic)."""
        timer = Timer(callback)
        heapq.heappush(self._timers, (when, next(self._numbers), timer))
        return timer

    def stop(self) -> None:
        """End :meth:`run` after this round."""
        self._running = False

    def run(self) -> None:
        """Serve until stopped."""
        while self._running:
            ready = [(fd, self._watched[fd]) for fd, _ in self._poll.poll(self._patience()) if fd in self._watched]
            for fd, callback in ready:
                # an earlier callback of this round may have closed it, and its number may be another's already
                if self._watched.get(fd) is callback:
                    callback()
            self._run_timers()

    def _patience(self) -> float | None:
        while self._timers and self._timers[0][2].callback is None:
            heapq.heappop(self._timers)
        return max(0.0, self._timers[0][0] - time.monotonic()) if self._timers else None

    def _run_timers(self) -> None:
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            callback = heapq.heappop(self._timers)[2].callback
            if callback is not None:
                callback()
