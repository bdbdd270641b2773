"""What the http engine makes of servers that fail, shown with a small server of the same protocol."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from rstar2cli.core.errors import DataError, EnvironmentMissing
from rstar2cli.engines import http_engine
from rstar2cli.engines.base import Request, Sampling
from rstar2cli.engines.config import EngineConfig
from rstar2cli.engines.http_engine import HttpEngine


class _Server(ThreadingHTTPServer):
    """Answers every request with token 9; ``statuses`` are what it says first, the probe of the start aside."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.statuses: list[int] = []
        self.asked = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        self._say(200, {"data": [{"id": "m", "max_model_len": 64}]})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked += 1
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        if status != 200:
            self._say(status, {"error": "not now"})
            return
        count = asked["max_tokens"]
        choice = {"token_ids": [9] * count, "logprobs": {"token_logprobs": [0.0] * count}, "finish_reason": "length"}
        self._say(200, {"choices": [choice]})

    def _say(self, status: int, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing on stderr."""


@contextmanager
def serving() -> Iterator[_Server]:
    server = _Server()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


REQUEST = Request(prompt_ids=[1, 2], max_tokens=3, stop_ids=[5], seed=1, sampling=Sampling())


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_engine, "_FIRST_PAUSE_S", 0.01)


def engine_for(*servers: _Server) -> HttpEngine:
    return HttpEngine(EngineConfig(name="http", endpoints=tuple(s.address for s in servers), max_running=2), "v0")


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_again(status: int) -> None:
    with serving() as server:
        engine = engine_for(server)
        server.statuses, server.asked = [status, status], 0
        assert engine.submit(REQUEST).result(30).ids == [9, 9, 9]
        assert server.asked == 3
        engine.close()


def test_a_request_of_a_busy_server_goes_to_another() -> None:
    with serving() as busy, serving() as free:
        engine = engine_for(busy, free)
        busy.statuses, busy.asked, free.asked = [503] * 10, 0, 0
        assert [engine.submit(REQUEST).result(30).ids for _ in range(3)] == [[9, 9, 9]] * 3
        assert free.asked == 3
        engine.close()


def test_servers_that_stay_busy_are_an_environment_fault() -> None:
    with serving() as server:
        engine = engine_for(server)
        server.statuses, server.asked = [503] * 10, 0
        with pytest.raises(EnvironmentMissing, match=r"4 tries.*status 503"):
            engine.submit(REQUEST).result(30)
        engine.close()


def test_a_refused_request_is_not_repeated() -> None:
    with serving() as server:
        engine = engine_for(server)
        server.statuses, server.asked = [400], 0
        with pytest.raises(DataError, match="status 400"):
            engine.submit(REQUEST).result(30)
        assert server.asked == 1
        engine.close()


def test_a_server_that_does_not_generate_is_refused_at_the_start() -> None:
    with serving() as server:
        server.statuses = [500]
        with pytest.raises(EnvironmentMissing, match=r"does not generate.*status 500"):
            engine_for(server)
