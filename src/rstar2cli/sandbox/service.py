"""The native API: run one call, run a batch, sessions, health, metrics, and the document that describes it all.

``POST /v1/run``, ``POST /v1/run/batch`` (results stream as they finish), ``POST /v1/sessions``,
``POST /v1/sessions/{session}/cells``, ``DELETE /v1/sessions/{session}``, ``GET /health``, ``GET /metrics``,
``GET /openapi.json``. Calls past the queue's bound get 503 with Retry-After at once, never a wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from rstar2cli.core import drain
from rstar2cli.sandbox.config import ServeConfig
from rstar2cli.sandbox.desk import Desk, Submit
from rstar2cli.sandbox.gate import Gate, Refused, json_response
from rstar2cli.sandbox.outcome import Outcome, SandboxRefused
from rstar2cli.sandbox.room import NoRoom
from rstar2cli.sandbox.wire import (
    BatchRequest,
    BatchResult,
    CallRequest,
    CellRequest,
    Health,
    SessionOpened,
    SessionRequest,
)

SESSION_HEADER = "X-Sandbox-Session"
RETRY_AFTER = {"Retry-After": "1"}


class Native:
    """Handlers of the native API."""

    def __init__(self, desk: Desk, gate: Gate, config: ServeConfig) -> None:
        """``desk``: runs the calls; ``gate``: admits requests."""
        self._desk, self._gate, self._config = desk, gate, config

    async def run(self, request: Request) -> Response:
        """One call."""
        call = await self._gate.body(request, CallRequest)
        (future,) = self._take([self._call(call)])
        return json_response(await future)

    async def run_batch(self, request: Request) -> Response:
        """Many calls; a line as each is finished."""
        batch = await self._gate.body(request, BatchRequest)
        if len(batch.calls) > min(self._config.batch, self._config.queue):
            most = min(self._config.batch, self._config.queue)
            raise Refused(413, f"{len(batch.calls)} calls in a batch, at most {most}")
        futures = self._take([self._call(call) for call in batch.calls])
        return StreamingResponse(_lines(futures), media_type="application/jsonl")

    async def open_session(self, request: Request) -> Response:
        """A new session."""
        asked = await self._gate.body(request, SessionRequest)
        try:
            session = await asyncio.wrap_future(self._desk.sandbox.open_session(seed=asked.seed))
        except SandboxRefused as refused:
            raise Refused(503, f"{refused.kind}: {refused.detail}", RETRY_AFTER) from refused
        return json_response(SessionOpened(session=session), 201, {SESSION_HEADER: session})

    async def run_cell(self, request: Request) -> Response:
        """A session's next cell."""
        cell = await self._gate.body(request, CellRequest)
        session = request.path_params["session"]
        (future,) = self._take([self._desk.cell(session, cell.code, cell.sequence)])
        return json_response(await future, headers={SESSION_HEADER: session})

    async def close_session(self, request: Request) -> Response:
        """End a session; one that is not known is no error."""
        self._gate.admit(request)
        self._desk.sandbox.close_session(request.path_params["session"])
        return Response(status_code=204)

    async def health(self, request: Request) -> Response:
        """Whether it works, and how full it is. Asks for no token: load balancers have none."""
        sandbox = self._desk.sandbox
        stopping = drain.requested()
        health = Health(
            status="draining" if stopping else "ok",
            workers=sandbox.workers,
            pending=self._desk.room.taken,
            capacity=self._desk.room.places,
            layers=sandbox.layers,
            missing=sandbox.missing,
        )
        return json_response(health, 503 if stopping else 200)

    async def metrics(self, request: Request) -> Response:
        """For Prometheus. Asks for no token, like health."""
        return Response(self._desk.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    def _call(self, call: CallRequest) -> Submit:
        return self._desk.call(call.code, call.stdin, seed=call.seed, wall_s=call.wall_s, memory_mib=call.memory_mib)

    def _take(self, submits: list[Submit]) -> list[asyncio.Future[Outcome]]:
        try:
            return self._desk.take(submits)
        except NoRoom:
            raise Refused(503, "overloaded", RETRY_AFTER) from None


async def _lines(futures: list[asyncio.Future[Outcome]]) -> AsyncIterator[bytes]:
    async def numbered(index: int, future: asyncio.Future[Outcome]) -> BatchResult:
        return BatchResult(index=index, outcome=await future)

    for finished in asyncio.as_completed([numbered(index, future) for index, future in enumerate(futures)]):
        yield msgspec.json.encode(await finished) + b"\n"
