"""A sandbox elsewhere: the client of ``rstar2 sandbox-serve``."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import httpx
import msgspec

from rstar2cli.core.errors import EnvironmentMissing
from rstar2cli.sandbox.outcome import Outcome
from rstar2cli.sandbox.wire import CallRequest, Health

_CONNECTIONS = 64
_CONNECT_S, _ANSWER_S = 5.0, 300.0


class HttpSandbox:
    """Sends calls to one service; implements :class:`rstar2cli.sandbox.outcome.Sandbox`.

    Does not retry: a full service gives `overloaded` and one that does not answer gives `lost`,
    and the caller's one retry policy decides.
    """

    def __init__(self, endpoint: str, *, token: str = "") -> None:
        """Raises ``EnvironmentMissing`` if the service does not answer or refuses the token."""
        self.endpoint = endpoint.rstrip("/")
        headers = {"Content-Type": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        try:
            self._client = httpx.Client(
                base_url=self.endpoint,
                headers=headers,
                timeout=httpx.Timeout(_ANSWER_S, connect=_CONNECT_S),
                limits=httpx.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS),
                trust_env=False,  # a proxy between trainer and sandbox is never meant
            )
        except (httpx.InvalidURL, ValueError) as error:
            raise EnvironmentMissing(f"sandbox endpoint {endpoint!r}: {error}") from error
        self._pool = ThreadPoolExecutor(max_workers=_CONNECTIONS, thread_name_prefix="sandbox-client")
        first = self._run("", "", 0)
        if first.kind != "ok":
            self.close()
            raise EnvironmentMissing(
                f"sandbox at {self.endpoint}: {first.kind}: {first.detail}",
                hint="start it with rstar2 sandbox-serve, or leave sandbox.endpoints empty to run code here",
            )

    def submit(self, code: str, stdin: str = "", *, seed: int = 0) -> Future[Outcome]:
        """Queue a call. The future never raises for what the code does."""
        try:
            return self._pool.submit(self._run, code, stdin, seed)
        except RuntimeError:  # shut down
            closed: Future[Outcome] = Future()
            closed.set_result(Outcome(kind="lost", detail="the sandbox is closed"))
            return closed

    def health(self) -> Health:
        """What the service says of itself. Raises ``EnvironmentMissing`` if it does not answer."""
        try:
            return msgspec.json.decode(self._client.get("/health").content, type=Health)
        except (httpx.HTTPError, msgspec.DecodeError) as error:
            raise EnvironmentMissing(f"sandbox at {self.endpoint}: {error}") from error

    def close(self) -> None:
        """Drop the connections; calls that wait are cancelled."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._client.close()

    def _run(self, code: str, stdin: str, seed: int) -> Outcome:
        # A lone surrogate has no UTF-8 form; the embedded sandbox lets the code fail on it, here it is replaced.
        clean = [text.encode("utf-8", "replace").decode() for text in (code, stdin)]
        body = msgspec.json.encode(CallRequest(code=clean[0], stdin=clean[1], seed=seed))
        try:
            response = self._client.post("/v1/run", content=body)
        except (httpx.HTTPError, RuntimeError) as error:  # RuntimeError: closed while it waited
            return Outcome(kind="lost", detail=f"{type(error).__name__}: {error}")
        if response.status_code == httpx.codes.SERVICE_UNAVAILABLE:
            return Outcome(kind="overloaded", detail="the service's queue is full")
        if response.status_code != httpx.codes.OK:
            return Outcome(kind="lost", detail=f"HTTP {response.status_code}: {response.text[:200]}")
        try:
            return msgspec.json.decode(response.content, type=Outcome)
        except msgspec.DecodeError as error:
            return Outcome(kind="lost", detail=f"not an outcome: {error}")
