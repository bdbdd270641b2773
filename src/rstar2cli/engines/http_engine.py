"""vLLM servers elsewhere, over their OpenAI-compatible completions with token ids.

Start them with ``vllm serve MODEL --logprobs-mode processed_logprobs``; a probe at the start
refuses servers that give raw log-probs. A request goes to the server with the fewest reserved
tokens, whatever that server knows of its beginning.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import httpx
import torch

from rstar2cli.core.errors import DataError, EnvironmentMissing, UsageError
from rstar2cli.engines.base import Completion, Request, Sampling
from rstar2cli.engines.config import EngineConfig

_CONNECT_S = 10.0
_TRIES = 4
_FIRST_PAUSE_S = 0.5
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
"""What a server, or a proxy before it, says when it may serve the same request later."""


class _Busy(Exception):
    """A server that could not serve a request now."""


@dataclass(kw_only=True)
class _Server:
    address: str
    model: str
    max_length: int
    reserved: int = 0


class HttpEngine:
    """See :class:`rstar2cli.engines.base.Engine`. Raises ``EnvironmentMissing`` for servers that can't be used."""

    def __init__(self, config: EngineConfig, version: str) -> None:
        if not config.endpoints:
            raise UsageError("the http engine needs addresses", hint="--set engine.endpoints=http://host:8000,…")
        self._version = version
        self._closed = False
        self._lock = threading.Lock()
        running = config.max_running * len(config.endpoints)
        limits = httpx.Limits(max_connections=running, max_keepalive_connections=running)
        self._client = httpx.Client(timeout=httpx.Timeout(None, connect=_CONNECT_S), limits=limits)
        self._pool = ThreadPoolExecutor(running, thread_name_prefix="rstar2-http")
        self._servers = [self._open(address.rstrip("/")) for address in config.endpoints]
        served = {server.model for server in self._servers}
        if len(served) > 1:
            raise EnvironmentMissing(f"the servers run different models: {', '.join(sorted(served))}")
        self._max_length = min(server.max_length for server in self._servers)
        if config.max_length:
            self._max_length = min(self._max_length, config.max_length)
        self._capacity = config.capacity_tokens or running * self._max_length

    @property
    def version(self) -> str:
        """Name of the weights, as the caller gave it: a server does not say what it has loaded."""
        return self._version

    @property
    def capacity_tokens(self) -> int:
        """Tokens of all servers together: `capacity_tokens`, else `max_running` × length for each."""
        return self._capacity

    @property
    def max_length(self) -> int:
        """Longest prompt and response together, of the server with the least."""
        return self._max_length

    def submit(self, request: Request) -> Future[Completion]:
        """Queue one generation; a server that fails is tried again, then another, before the future fails."""
        need = len(request.prompt_ids) + request.max_tokens
        if not len(request.prompt_ids) or request.max_tokens < 1 or need > self._max_length:
            refused: Future[Completion] = Future()
            refused.set_exception(
                UsageError(
                    f"a prompt of {len(request.prompt_ids)} and {request.max_tokens} new tokens do not fit "
                    f"the servers' {self._max_length}"
                )
            )
            return refused
        if self._closed:
            cancelled: Future[Completion] = Future()
            cancelled.set_exception(CancelledError())
            return cancelled
        return self._pool.submit(self._complete, request)

    def generate_wave(self, requests: Sequence[Request | None]) -> list[Completion | None]:
        """Always raises ``EnvironmentMissing``: a server forms its batches by what else is running."""
        raise EnvironmentMissing(
            "the http engine has no deterministic mode", hint="use --set engine.name=transformers for it"
        )

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]], version: str) -> None:
        """Always raises ``EnvironmentMissing``: weights can't be sent to servers."""
        raise EnvironmentMissing(
            "the http engine can't take new weights", hint="train with --set rollout.engine.name=vllm or transformers"
        )

    def idle(self) -> None:
        """Nothing: the memory is the servers'."""

    def close(self) -> None:
        """Cancel what is queued and drop the connections."""
        self._closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._client.close()

    def _complete(self, request: Request) -> Completion:
        need = len(request.prompt_ids) + request.max_tokens
        failed: list[str] = []
        for attempt in range(_TRIES):
            server = self._choose(need, failed)
            try:
                return self._ask(server, request)
            except (httpx.TransportError, _Busy) as error:
                if self._closed:
                    raise CancelledError from error
                failed.append(server.address)
                last = f"{server.address}: {type(error).__name__}: {error}"
            finally:
                with self._lock:
                    server.reserved -= need
            time.sleep(_FIRST_PAUSE_S * 2**attempt)
        raise EnvironmentMissing(f"no server answered in {_TRIES} tries; the last: {last}")

    def _choose(self, need: int, failed: Sequence[str]) -> _Server:
        """Reserve room on the emptiest server that has not failed this request, or on any if all have."""
        with self._lock:
            usable = [server for server in self._servers if server.address not in failed] or self._servers
            emptiest = min(usable, key=lambda server: server.reserved)
            emptiest.reserved += need
            return emptiest

    def _ask(self, server: _Server, request: Request) -> Completion:
        sampling = request.sampling
        body = {
            "model": server.model,
            "prompt": list(request.prompt_ids),
            "max_tokens": request.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": sampling.top_k,
            "seed": request.seed,
            "stop_token_ids": list(request.stop_ids),
            "ignore_eos": True,  # the request alone says what ends it
            "logprobs": 0,
            "return_token_ids": True,
            "add_special_tokens": False,
        }
        choice = self._post(f"{server.address}/v1/completions", body)["choices"][0]
        ids, logprobs = choice.get("token_ids"), (choice.get("logprobs") or {}).get("token_logprobs")
        if not ids or not logprobs or len(ids) != len(logprobs):
            raise EnvironmentMissing(
                f"{server.address}: an answer without token ids and their log-probs", hint="the server needs vLLM 0.11"
            )
        return Completion(ids=ids, logprobs=logprobs, finish=choice["finish_reason"], policy=self._version)

    def _post(self, address: str, body: dict[str, Any]) -> Any:
        answer = self._client.post(address, json=body)
        if answer.status_code in _PASSING:
            raise _Busy(f"status {answer.status_code}: {answer.text[:300]}")
        if answer.status_code >= 400:
            raise DataError(f"{address}: status {answer.status_code}: {answer.text[:300]}")
        return answer.json()

    def _open(self, address: str) -> _Server:
        """What a server says about itself, and the probe of its log-probs."""
        try:
            answer = self._client.get(f"{address}/v1/models", timeout=_CONNECT_S)
            answer.raise_for_status()
            model = answer.json()["data"][0]
            server = _Server(address=address, model=model["id"], max_length=int(model["max_model_len"]))
        except (httpx.HTTPError, ValueError, KeyError, IndexError) as error:
            raise EnvironmentMissing(f"{address}: not a vLLM server that answers: {error}") from error
        # The likeliest token alone is left, so its processed log-prob is 0; its raw one is not.
        probe = Request(prompt_ids=[1], max_tokens=1, stop_ids=[], seed=0, sampling=Sampling(top_k=1))
        try:
            (logprob,) = self._ask(server, probe).logprobs
        except (httpx.TransportError, _Busy) as error:
            raise EnvironmentMissing(f"{address}: lists its model but does not generate: {error}") from error
        if abs(logprob) > 1e-4:
            raise EnvironmentMissing(
                f"{address}: gives raw log-probs, not those of the distribution that it samples from",
                hint="start it with: vllm serve MODEL --logprobs-mode processed_logprobs",
            )
        return server
