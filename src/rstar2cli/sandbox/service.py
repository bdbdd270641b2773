"""The sandbox over HTTP: run one call, run a batch, health.

``POST /v1/run``, ``POST /v1/run/batch`` (results stream as they finish), ``GET /health``. Calls
past the queue's bound get 503 with Retry-After at once, never a wait. It isolates as much as
:mod:`rstar2cli.sandbox.local` does and no more. A request body must be JSON by its content type
(a web page can't send that unasked), and without a token the Host must be loopback.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from typing import TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from rstar2cli.core import drain
from rstar2cli.sandbox.config import LOOPBACK, ServeConfig
from rstar2cli.sandbox.local import LocalSandbox
from rstar2cli.sandbox.outcome import Outcome
from rstar2cli.sandbox.wire import BatchRequest, BatchResult, CallRequest, Health

_MIB = 1024 * 1024
_RETRY_AFTER_S = 1
T = TypeVar("T")


class _Refused(Exception):
    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.response = _json({"error": message}, status, headers)


def create_app(sandbox: LocalSandbox, config: ServeConfig) -> Starlette:
    """The ASGI application over a sandbox that the caller closes."""
    service = _Service(sandbox, config)
    return Starlette(
        routes=[
            Route("/v1/run", _answering(service.run), methods=["POST"]),
            Route("/v1/run/batch", _answering(service.run_batch), methods=["POST"]),
            Route("/health", _answering(service.health), methods=["GET"]),
        ]
    )


class _Service:
    """State is touched in the event loop's thread only."""

    def __init__(self, sandbox: LocalSandbox, config: ServeConfig) -> None:
        self._sandbox = sandbox
        self._config = config
        self._pending = 0

    async def run(self, request: Request) -> Response:
        call = await self._body(request, CallRequest)
        (future,) = self._submit([call])
        return _json(await future)

    async def run_batch(self, request: Request) -> Response:
        batch = await self._body(request, BatchRequest)
        return StreamingResponse(_lines(self._submit(batch.calls)), media_type="application/jsonl")

    async def health(self, request: Request) -> Response:
        layers = await asyncio.to_thread(lambda: self._sandbox.layers)
        return _json(
            Health(
                status="draining" if drain.requested() else "ok",
                workers=self._sandbox.workers,
                pending=self._pending,
                capacity=self._config.queue,
                layers=layers,
            )
        )

    def _submit(self, calls: list[CallRequest]) -> list[asyncio.Future[Outcome]]:
        """Queue all or none."""
        if len(calls) > self._config.queue:
            raise _Refused(413, f"{len(calls)} calls in a batch, at most {self._config.queue}")
        if self._pending + len(calls) > self._config.queue:
            raise _Refused(503, "overloaded", {"Retry-After": str(_RETRY_AFTER_S)})
        loop = asyncio.get_running_loop()
        futures = []
        for call in calls:
            self._pending += 1
            future = self._sandbox.submit(call.code, call.stdin, seed=call.seed)
            future.add_done_callback(lambda done: self._finished(loop, done))
            # shielded: a client that goes away must not cancel what may already run
            futures.append(asyncio.ensure_future(asyncio.shield(asyncio.wrap_future(future))))
        return futures

    def _finished(self, loop: asyncio.AbstractEventLoop, _: Future[Outcome]) -> None:
        def count() -> None:
            self._pending -= 1

        if not loop.is_closed():
            loop.call_soon_threadsafe(count)

    async def _body(self, request: Request, cls: type[T]) -> T:
        self._admit(request)
        limit = self._config.body_mib * _MIB
        data = bytearray()
        async for chunk in request.stream():
            data += chunk
            if len(data) > limit:
                raise _Refused(413, f"body over {self._config.body_mib} MiB", {"Connection": "close"})
        try:
            return msgspec.json.decode(data, type=cls)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise _Refused(400, str(error)) from error

    def _admit(self, request: Request) -> None:
        token = self._config.token
        if token:
            given = request.headers.get("authorization", "")
            if not hmac.compare_digest(given.encode("latin-1"), f"Bearer {token}".encode()):
                raise _Refused(401, "wrong or missing token", {"WWW-Authenticate": "Bearer"})
        elif request.url.hostname not in LOOPBACK:
            raise _Refused(403, "unexpected Host")
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise _Refused(415, "content type must be application/json")


def _answering(handler: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except _Refused as refused:
            return refused.response

    return answer


async def _lines(futures: list[asyncio.Future[Outcome]]) -> AsyncIterator[bytes]:
    async def numbered(index: int, future: asyncio.Future[Outcome]) -> BatchResult:
        return BatchResult(index=index, outcome=await future)

    for finished in asyncio.as_completed([numbered(index, future) for index, future in enumerate(futures)]):
        yield msgspec.json.encode(await finished) + b"\n"


def _json(value: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(value), status, headers, media_type="application/json")
