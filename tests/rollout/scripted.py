"""An engine that says what a script tells it, so that episodes of every kind can be played."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import Any

import torch

from rstar2cli.core.errors import UsageError
from rstar2cli.dialogue.config import DialogueConfig
from rstar2cli.dialogue.dialogue import Dialogue
from rstar2cli.dialogue.tools import PYTHON_TOOL
from rstar2cli.engines.base import Completion, Request
from rstar2cli.policy.tiny import byte_tokenizer
from rstar2cli.records import Problem

DIALOGUE = Dialogue(byte_tokenizer(), DialogueConfig(system="short"))
TURN_MARK = "<|im_start|>assistant"

Script = Callable[[str, int], str]
"""(prompt text, number of the turn from 0) → what the model writes."""


class ScriptedEngine:
    """Answers at once, in a thread of its own; counts what it was asked."""

    version = "script"
    max_length = 100_000

    def __init__(self, script: Script, *, capacity_tokens: int = 1 << 20) -> None:
        self.script = script
        self.capacity_tokens = capacity_tokens
        self.requests: list[Request] = []
        self.waves: list[int] = []
        self.most_running = 0
        self._running = 0
        self._lock = threading.Lock()

    def submit(self, request: Request) -> Future[Completion]:
        future: Future[Completion] = Future()
        with self._lock:
            self.requests.append(request)
            self._running += 1
            self.most_running = max(self.most_running, self._running)

        def answer() -> None:
            try:
                completion = self.complete(request)
            except Exception as error:  # noqa: BLE001 - the future carries it, as the protocol says
                future.set_exception(error)
                return
            with self._lock:
                self._running -= 1
            future.set_result(completion)

        timer = threading.Timer(0.002, answer)
        timer.daemon = True
        timer.start()
        return future

    def generate_wave(self, requests: Sequence[Request | None]) -> list[Completion | None]:
        self.waves.append(len(requests))
        self.requests += [request for request in requests if request is not None]
        return [None if request is None else self.complete(request) for request in requests]

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]], version: str) -> None:
        raise UsageError("a script has no weights")

    def idle(self) -> None:
        """Nothing to free."""

    def close(self) -> None:
        """Nothing to stop."""

    def complete(self, request: Request) -> Completion:
        prompt = DIALOGUE.decode(request.prompt_ids)
        text = self.script(prompt, prompt.count(TURN_MARK) - 1)
        ids = [*DIALOGUE._encoder.text(text), DIALOGUE.stop_ids[0]]
        cut = len(ids) > request.max_tokens
        ids = ids[: request.max_tokens]
        return Completion(ids=ids, logprobs=[-0.5] * len(ids), finish="length" if cut else "stop", policy="script")


def problem(number: int = 0, **fields: Any) -> Problem:
    """A problem whose answer is its number."""
    return Problem(
        **{"id": f"p{number}", "source": "test", "prompt": f"Say {number}.", "answer": str(number), **fields}
    )


def call(code: str, stdin: str = "") -> str:
    """A tool call as a model writes it."""
    import json

    body = json.dumps({"name": PYTHON_TOOL, "arguments": {"code": code, "input": stdin}})
    return f"<tool_call>\n{body}\n</tool_call>"


def final(answer: object) -> str:
    """A last turn."""
    return f"done</reason><answer>\\boxed{{{answer}}}</answer>"
