"""The embedded engine: continuous batching on one device, in a thread of this process.

Requests are admitted as room falls free, prompts are computed packed with the tokens of the
running rows (what a slot holds already is not computed again), every row takes one token a
step, and a finished row leaves at once.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

import torch

from rstar2cli.core.errors import EnvironmentMissing, RstarError, UsageError
from rstar2cli.core.process import memory_limit
from rstar2cli.engines import weights as weight_names
from rstar2cli.engines.base import Completion, Request
from rstar2cli.engines.config import EngineConfig
from rstar2cli.engines.decoder import Decoder, LeanDecoder, lean_supports
from rstar2cli.engines.generic_decoder import GenericDecoder
from rstar2cli.engines.probe import TOLERANCE, difference
from rstar2cli.engines.running import Row, step
from rstar2cli.engines.slots import SlotCache
from rstar2cli.engines.wave import run_wave

Result = TypeVar("Result")

_KEPT = 4
"""One more slot for so many rows: contents of rows that pause (their tool runs) outlive the arrival of new ones."""


class TransformersEngine:
    """See :class:`rstar2cli.engines.base.Engine`. ``model`` is copied where the lean pass runs it."""

    def __init__(self, model: Any, config: EngineConfig, version: str) -> None:
        self._version = version
        limit = int(getattr(model.config.get_text_config(), "max_position_embeddings", 0)) or 1 << 20
        if config.max_length > limit:
            raise UsageError(
                f"engine.max_length {config.max_length} is over the model's {limit}", hint=f"use at most {limit}"
            )
        self._max_length = config.max_length or limit
        with torch.inference_mode():
            self._decoder = _choose_decoder(model, self._max_length)
        shape = self._decoder.cache_shape
        self._max_running = config.max_running
        self._capacity = config.capacity_tokens or self._default_capacity(config.memory_share)
        self._cache = SlotCache(
            layers=shape.layers,
            slots=config.max_running + max(1, config.max_running // _KEPT),
            kv_heads=shape.kv_heads,
            head_dim=shape.head_dim,
            dtype=self._decoder.dtype,
            device=self._decoder.device,
        )
        self._condition = threading.Condition()
        self._queue: deque[tuple[Request, Future[Completion]]] = deque()
        self._tasks: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._rows: list[Row] = []
        self._closed = False
        self._broken: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="rstar2-engine", daemon=True)
        self._thread.start()

    @property
    def version(self) -> str:
        """Name of the weights that are loaded."""
        return self._version

    @property
    def capacity_tokens(self) -> int:
        """KV-cache tokens that the running requests may reserve together."""
        return self._capacity

    @property
    def max_length(self) -> int:
        """Longest prompt and response together, in tokens."""
        return self._max_length

    @property
    def lean(self) -> bool:
        """Whether the lean forward pass runs (else that of transformers)."""
        return isinstance(self._decoder, LeanDecoder)

    def submit(self, request: Request) -> Future[Completion]:
        """Queue one generation."""
        future: Future[Completion] = Future()
        error = self._refusal(request)
        if error is not None:
            future.set_exception(error)
            return future
        with self._condition:
            if self._unusable(future):
                return future
            self._queue.append((request, future))
            self._condition.notify_all()
        return future

    def generate_wave(self, requests: Sequence[Request | None]) -> list[Completion | None]:
        """Deterministic mode; runs alone, after what is running. Raises ``UsageError`` if it can't fit."""
        present = [request for request in requests if request is not None]
        for request in present:
            error = self._refusal(request)
            if error is not None:
                raise error
        reserved = sum(_reservation(request) for request in present)
        if reserved > self._capacity:
            raise UsageError(
                f"a wave of {len(requests)} needs {reserved} cache tokens and there are {self._capacity}",
                hint=f"use waves of at most {max(1, len(requests) * self._capacity // reserved)}",
            )
        version = self._version
        return self._alone(lambda: run_wave(requests, self._decoder, self._cache, version))

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]], version: str) -> None:
        """Replace the weights once nothing runs, and forget every cached token."""

        def load() -> None:
            weight_names.write(self._decoder.parameters(), weights)
            self._cache.forget()
            self._version = version

        self._alone(load)

    def idle(self) -> None:
        """Free the key-value cache once nothing runs."""
        self._alone(self._cache.free)

    def close(self) -> None:
        """Stop the thread; outstanding requests are cancelled."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    # Below: the engine's own thread, and what it shares with callers.

    def _run(self) -> None:
        try:
            with torch.inference_mode():
                while self._wait_for_work():
                    self._run_tasks()
                    running = list(self._rows)
                    fresh = self._admit()
                    if self._rows:
                        self._finish(step(running, fresh, self._decoder, self._cache))
            error: BaseException = CancelledError()
        except BaseException as failure:  # noqa: BLE001  # whatever it is, nobody may wait for it forever
            error = failure
        self._fail_all(error)

    def _wait_for_work(self) -> bool:
        with self._condition:
            self._condition.wait_for(lambda: self._closed or self._queue or self._tasks or self._rows)
            return not self._closed

    def _run_tasks(self) -> None:
        while self._tasks and not self._rows:
            with self._condition:
                task, future = self._tasks.popleft()
            try:
                future.set_result(task())
            except RstarError as error:  # a refusal, not a defect: the engine goes on
                future.set_exception(error)
            except BaseException as error:
                future.set_exception(error)
                raise

    def _admit(self) -> list[Row]:
        """Take requests in order while they fit; a task that waits lets nothing new in."""
        fresh: list[Row] = []
        reserved = sum(_reservation(row.request) for row in self._rows)
        with self._condition:
            while self._queue and not self._tasks and len(self._rows) + len(fresh) < self._max_running:
                request, future = self._queue[0]
                if reserved + _reservation(request) > self._capacity:
                    break
                self._queue.popleft()
                if future.set_running_or_notify_cancel():
                    reserved += _reservation(request)
                    fresh.append(Row(request, future))
        self._rows += fresh
        return fresh

    def _finish(self, done: list[Row]) -> None:
        for row in done:
            self._rows.remove(row)
            self._cache.release(row.slot, row.cached_ids())
            if row.future is not None:
                row.future.set_result(row.completion(self._version))

    def _alone(self, task: Callable[[], Result]) -> Result:
        """Run ``task`` in the engine's thread when no row is running."""
        future: Future[Result] = Future()
        with self._condition:
            if not self._unusable(future):
                self._tasks.append((task, future))
                self._condition.notify_all()
        return future.result()

    def _unusable(self, future: Future[Any]) -> bool:
        if self._broken is not None:
            future.set_exception(self._broken)
        elif self._closed:
            future.set_exception(CancelledError())
        return self._broken is not None or self._closed

    def _fail_all(self, error: BaseException) -> None:
        with self._condition:
            if not isinstance(error, CancelledError):
                self._broken = error
            waiting: list[Future[Any]] = [future for _, future in self._queue]
            waiting += [row.future for row in self._rows if row.future is not None]
            waiting += [future for _, future in self._tasks]
            self._queue.clear()
            self._tasks.clear()
            self._rows.clear()
        for future in waiting:
            if not future.done():
                future.set_exception(error)

    def _refusal(self, request: Request) -> UsageError | None:
        if not len(request.prompt_ids) or request.max_tokens < 1:
            return UsageError("a request needs a prompt and room for at least one token")
        most = min(self._max_length, self._capacity)
        if _reservation(request) <= most:
            return None
        return UsageError(
            f"a prompt of {len(request.prompt_ids)} and {request.max_tokens} new tokens are over the engine's {most}",
            hint=f"lower the response limit to {max(0, most - len(request.prompt_ids))} "
            "or raise engine.max_length and engine.capacity_tokens",
        )

    def _default_capacity(self, share: float) -> int:
        shape, device = self._decoder.cache_shape, self._decoder.device
        token = SlotCache.token_bytes(
            layers=shape.layers, kv_heads=shape.kv_heads, head_dim=shape.head_dim, dtype=self._decoder.dtype
        )
        memory = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else memory_limit()
        affordable = int(memory * share) // token
        if affordable < 1:
            raise EnvironmentMissing(f"no memory for a key-value cache on {device}")
        return min(self._max_running * self._max_length, affordable)


def _reservation(request: Request) -> int:
    return len(request.prompt_ids) + request.max_tokens


def _choose_decoder(model: Any, max_length: int) -> Decoder:
    """The lean pass if it gives what the model gives on a probe, else the model's own."""
    model.eval()
    if lean_supports(model):
        lean = LeanDecoder(model, max_length=max_length)
        off = difference(lean, model)
        if off <= TOLERANCE.get(lean.dtype, 0.1):
            return lean
        # Not an error, but several times slower: it must not go unseen
        logging.getLogger(__name__).warning("lean forward pass is off by %.3f on a probe; using the model's own", off)
    return GenericDecoder(model)
