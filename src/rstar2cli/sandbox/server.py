"""Serve the sandbox until a drain is asked for; then let running requests finish."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn

from rstar2cli.core import drain
from rstar2cli.core.errors import EnvironmentMissing
from rstar2cli.sandbox.app import create_app
from rstar2cli.sandbox.config import ServeConfig
from rstar2cli.sandbox.local import LocalSandbox

_IDLE_CONNECTION_S = 30
_LARGEST_HEADERS = 16384
_BACKLOG = 4096


def serve(config: ServeConfig, started: Callable[[str, LocalSandbox], None]) -> None:
    """Listen and serve; ``started`` is told the address once a first call has worked.

    Returns after a requested drain (:mod:`rstar2cli.core.drain`). Raises ``EnvironmentMissing``
    if the address can't be used or the sandbox does not work here.
    """
    listener = _listen(config)
    sandbox = LocalSandbox(config.sandbox)
    try:
        first = sandbox.submit("1").result()
        if first.kind != "ok":
            raise EnvironmentMissing(
                f"the sandbox does not work here: {first.kind} {first.detail or ''}".strip(), hint="see rstar2 doctor"
            )
        host, port = listener.getsockname()[:2]
        sandbox.warm_up()
        started(f"http://{f'[{host}]' if ':' in host else host}:{port}", sandbox)
        _Server(
            uvicorn.Config(
                create_app(sandbox, config),
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=_IDLE_CONNECTION_S,
                timeout_graceful_shutdown=config.drain_s,
                http="h11",
                h11_max_incomplete_event_size=_LARGEST_HEADERS,
            ),
            config.read_s,
        ).run(sockets=[listener])
    finally:
        sandbox.close()
        listener.close()


class _Server(uvicorn.Server):
    """Stops by the drain flag; signals belong to the command line. Drops connections that send no whole request."""

    def __init__(self, config: uvicorn.Config, read_s: float) -> None:
        super().__init__(config)
        self._read_s = read_s
        self._silent_since: dict[Any, float] = {}

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:
            self._drop_silent()
        return drain.requested() or await super().on_tick(counter)

    def _drop_silent(self) -> None:
        """Close what has had no request under way for too long; half a head, sent byte by byte, is none."""
        now = time.monotonic()
        silent = {}
        for connection in list(self.server_state.connections):
            cycle = getattr(connection, "cycle", None)
            if cycle is not None and not cycle.response_complete:
                continue
            since = self._silent_since.get(connection, now)
            if now - since > self._read_s:
                connection.transport.close()
            else:
                silent[connection] = since
        self._silent_since = silent

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _listen(config: ServeConfig) -> socket.socket:
    listener = None
    try:
        family, _, _, _, address = socket.getaddrinfo(
            config.host, config.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # the protocol is named: without it asyncio leaves Nagle's algorithm on, and every answer waits 40 ms
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        if listener is not None:
            listener.close()
        raise EnvironmentMissing(
            f"can't listen on {config.host}:{config.port}: {error.strerror or error}",
            hint="choose another port (--port 0 takes any free one)",
        ) from error
    return listener
