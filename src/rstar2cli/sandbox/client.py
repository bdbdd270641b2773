"""A sandbox elsewhere: the client of one or several ``rstar2 sandbox-serve``.

One thread with an event loop carries any number of calls. A stateless call whose service fails is
sent to another one, and is `lost` only when none is left; a full service is asked again when it
says so. A session stays where it was opened.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

import aiohttp
import msgspec

from rstar2cli.core.errors import EnvironmentMissing
from rstar2cli.sandbox.endpoints import Endpoint, Endpoints
from rstar2cli.sandbox.outcome import Outcome, SandboxRefused
from rstar2cli.sandbox.wire import CallRequest, CellRequest, Health, SessionOpened, SessionRequest

_CONNECT_S, _ANSWER_S, _HEALTH_S = 5.0, 600.0, 10.0
PATIENCE_S = 60.0
"""Time for which a call asks again while every service is full."""
_CLOSED = Outcome(kind="lost", detail="the sandbox is closed")
T = TypeVar("T")


class _Failed(Exception):
    """A service gave no answer to a request; the message says why."""


class _Full(Exception):
    """A service has no room; ``after``: seconds until it may be asked again."""

    def __init__(self, after: float) -> None:
        super().__init__("the service's queue is full")
        self.after = after


class _Rejected(Exception):
    """A service does not take this request, and no other would."""


class HttpSandbox:
    """Implements :class:`rstar2cli.sandbox.outcome.Sandbox` with services over HTTP."""

    def __init__(self, endpoints: Sequence[str], *, token: str = "", patience_s: float = PATIENCE_S) -> None:
        """Raises ``EnvironmentMissing`` if no service answers or one refuses us."""
        self._endpoints = Endpoints([Endpoint(address.rstrip("/")) for address in endpoints])
        self._patience_s = patience_s
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        self._homes: dict[str, Endpoint] = {}
        self._open: set[Future[Any]] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._loop = asyncio.new_event_loop()
        self._http: aiohttp.ClientSession | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, name="sandbox-client", daemon=True)
        self._thread.start()
        try:
            self._first_calls()
        except BaseException:
            self.close()
            raise

    def submit(
        self,
        code: str,
        stdin: str = "",
        *,
        seed: int = 0,
        wall_s: float | None = None,
        memory_mib: int | None = None,
        files: Mapping[str, bytes] | None = None,
    ) -> Future[Outcome]:
        """Queue a call; see :meth:`rstar2cli.sandbox.outcome.Sandbox.submit`. ``files`` can't be sent."""
        if files:
            raise ValueError("files can't be sent to a service")
        request = CallRequest(code=_utf8(code), stdin=_utf8(stdin), seed=seed, wall_s=wall_s, memory_mib=memory_mib)
        return self._start(self._run(msgspec.json.encode(request)), _CLOSED)

    def open_session(self, *, seed: int = 0) -> Future[str]:
        """Open a session; see :meth:`rstar2cli.sandbox.outcome.Sandbox.open_session`."""
        return self._start(self._open_session(msgspec.json.encode(SessionRequest(seed=seed))), None)

    def run_cell(self, session: str, code: str, *, sequence: int) -> Future[Outcome]:
        """Run a cell; see :meth:`rstar2cli.sandbox.outcome.Sandbox.run_cell`."""
        request = CellRequest(code=_utf8(code), sequence=sequence)
        return self._start(self._run_cell(session, msgspec.json.encode(request)), _CLOSED)

    def close_session(self, session: str) -> None:
        """End a session; one that is not known is no error."""
        endpoint = self._homes.pop(session, None)
        if endpoint is not None:
            self._start(self._end_session(endpoint, session), None)

    def health(self) -> list[Health]:
        """What each service says of itself. Raises ``EnvironmentMissing`` if one does not answer."""
        try:
            return [self._start(self._health(endpoint), None).result() for endpoint in self._endpoints.all]
        except (_Failed, _Rejected) as error:
            raise EnvironmentMissing(f"sandbox: {error}") from error

    def close(self) -> None:
        """Drop the connections; calls that wait are `lost`. Safe to call twice."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _first_calls(self) -> None:
        body = msgspec.json.encode(CallRequest(code=""))
        troubles = []
        for endpoint in self._endpoints.all:
            try:
                first = self._start(self._outcome(endpoint, "/v1/run", body), None).result()
                trouble = "" if first.kind in ("ok", "overloaded") else f"{first.kind}: {first.detail}"
            except _Full:
                trouble = ""
            except (_Failed, _Rejected) as error:
                trouble = str(error)
            if trouble:
                troubles.append(f"{endpoint.address}: {trouble}")
                self._endpoints.failed(endpoint, trouble)
        if len(troubles) == len(self._endpoints.all):
            raise EnvironmentMissing(
                f"no sandbox answers: {'; '.join(troubles)}",
                hint="start one with rstar2 sandbox-serve, or leave sandbox.endpoints empty to run code here",
            )

    def _start(self, work: Coroutine[Any, Any, T], if_closed: Any) -> Future[T]:
        future: Future[T] = Future()

        async def carry() -> None:
            try:
                result = await work
            except asyncio.CancelledError:
                _settle(future, if_closed)
            except BaseException as error:  # noqa: BLE001 - whoever waits must hear of it
                if not future.done():
                    future.set_exception(error)
            else:
                if not future.done():
                    future.set_result(result)
            finally:
                self._open.discard(future)

        with self._lock:
            if self._closed:
                work.close()
                _settle(future, if_closed)
                return future
            self._open.add(future)
            asyncio.run_coroutine_threadsafe(carry(), self._loop)
        return future

    async def _end(self) -> None:
        own = asyncio.current_task()
        others = [task for task in asyncio.all_tasks(self._loop) if task is not own]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        if self._http is not None:
            await self._http.close()

    async def _run(self, body: bytes) -> Outcome:
        """A stateless call: wherever there is room, and again elsewhere if it fails on our side."""
        until = self._loop.time() + self._patience_s
        tried: list[Endpoint] = []
        last = Outcome(kind="lost", detail="no service is up")
        pause = None
        while True:
            endpoint = self._endpoints.best(tried)
            if endpoint is None and pause is not None and self._loop.time() + pause < until:
                await asyncio.sleep(pause * random.uniform(1.0, 1.5))
                tried, pause = [], None
                continue
            if endpoint is None:
                troubles = self._endpoints.troubles()
                return msgspec.structs.replace(last, detail=f"{last.detail or ''} ({troubles})") if troubles else last
            tried.append(endpoint)
            try:
                last = await self._outcome(endpoint, "/v1/run", body)
            except _Full as full:
                pause = min(full.after, pause or full.after)
                last = Outcome(kind="overloaded", detail="the service's queue is full")
            except _Failed as failure:
                last = Outcome(kind="lost", detail=f"every service is down: {failure}")
            except _Rejected as rejection:
                return Outcome(kind="lost", detail=str(rejection))
            else:
                if not last.infrastructure:
                    return last

    async def _open_session(self, body: bytes) -> str:
        tried: list[Endpoint] = []
        refused = SandboxRefused("lost", "no service is up")
        while (endpoint := self._endpoints.best(tried)) is not None:
            tried.append(endpoint)
            try:
                opened = msgspec.json.decode(await self._post(endpoint, "/v1/sessions", body), type=SessionOpened)
            except _Full as full:
                refused = SandboxRefused("overloaded", str(full))
            except (_Failed, _Rejected) as failure:
                refused = SandboxRefused("lost", str(failure))
            else:
                self._homes[opened.session] = endpoint
                return opened.session
        raise refused

    async def _run_cell(self, session: str, body: bytes) -> Outcome:
        endpoint = self._homes.get(session)
        if endpoint is None:
            return Outcome(kind="lost", detail="unknown session")
        for _ in range(2):  # the service runs a cell once: asked again, it gives the outcome that it had
            try:
                return await self._outcome(endpoint, f"/v1/sessions/{session}/cells", body)
            except _Full as full:
                await asyncio.sleep(full.after)
                failure: Exception = full
            except _Failed as failed:
                failure = failed
            except _Rejected as rejected:
                return Outcome(kind="lost", detail=str(rejected))
        return Outcome(kind="overloaded" if isinstance(failure, _Full) else "lost", detail=str(failure))

    async def _end_session(self, endpoint: Endpoint, session: str) -> None:
        with contextlib.suppress(_Failed, _Full, _Rejected):  # it ends by itself when it is idle
            await self._request("DELETE", endpoint, f"/v1/sessions/{session}", None)

    async def _health(self, endpoint: Endpoint) -> Health:
        async with asyncio.timeout(_HEALTH_S):
            return msgspec.json.decode(await self._request("GET", endpoint, "/health", None), type=Health)

    async def _outcome(self, endpoint: Endpoint, path: str, body: bytes) -> Outcome:
        data = await self._post(endpoint, path, body)
        try:
            return msgspec.json.decode(data, type=Outcome)
        except msgspec.DecodeError as error:
            raise _Rejected(f"not an outcome: {error}") from error

    async def _post(self, endpoint: Endpoint, path: str, body: bytes) -> bytes:
        endpoint.outstanding += 1
        try:
            data = await self._request("POST", endpoint, path, body)
        except _Failed as failure:
            self._endpoints.failed(endpoint, str(failure))
            raise
        finally:
            endpoint.outstanding -= 1
        self._endpoints.worked(endpoint)
        return data

    async def _request(self, method: str, endpoint: Endpoint, path: str, body: bytes | None) -> bytes:
        if self._http is None:
            self._http = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),  # the service says when it is full, not our own pool
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=_ANSWER_S),
                headers=self._headers,
                trust_env=False,  # a proxy between trainer and sandbox is never meant
            )
        try:
            async with self._http.request(method, endpoint.address + path, data=body) as response:
                data = await response.read()
                if response.status == 503:
                    raise _full_or_failed(response.headers, data)
                if response.status >= 500:
                    raise _Failed(f"HTTP {response.status}: {data[:200].decode(errors='replace')}")
                if response.status >= 400:
                    raise _Rejected(f"HTTP {response.status}: {data[:200].decode(errors='replace')}")
                return data
        except aiohttp.InvalidURL as error:
            raise _Rejected(f"{endpoint.address!r} is no address") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _Failed(f"{type(error).__name__}: {error}".rstrip(": ")) from error


def _full_or_failed(headers: Mapping[str, str], data: bytes) -> Exception:
    """A 503 of ours names a time; one of a load balancer, all of whose servers are down, does not."""
    after = headers.get("Retry-After", "")
    if after.isdigit():
        return _Full(float(after))
    return _Failed(f"HTTP 503: {data[:200].decode(errors='replace')}")


def _settle(future: Future[Any], if_closed: Any) -> None:
    if future.done():
        return
    if if_closed is None:
        future.set_exception(SandboxRefused("lost", "the sandbox is closed"))
    else:
        future.set_result(if_closed)


def _utf8(text: str) -> str:
    """A lone surrogate has no UTF-8 form; the embedded sandbox lets the code fail on it, here it is replaced."""
    return text.encode("utf-8", "replace").decode()
