"""Running the tool calls of a turn: refusals, the sandbox, retries of what failed on our side."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import dataclass

from rstar2cli.dialogue.calls import ParsedCall
from rstar2cli.dialogue.config import DialogueConfig
from rstar2cli.dialogue.tools import CallProblem, PythonCall, check_call
from rstar2cli.rollout import tooltext
from rstar2cli.sandbox.outcome import Outcome, Sandbox

_FIRST_PAUSE_S = 0.1


@dataclass(frozen=True, kw_only=True)
class CallResult:
    """What became of one call."""

    outcome: str
    """As in :class:`rstar2cli.records.CallRecord`."""
    output: str | None
    """Text for the model; null if it failed on our side."""
    seconds: float | None = None
    """Wall time of the execution; null if nothing ran."""
    detail: str | None = None
    """For failures on our side: what went wrong."""


class ToolRunner:
    """Starts calls; safe to use from any thread."""

    def __init__(self, sandbox: Sandbox, config: DialogueConfig, retries: int) -> None:
        self._sandbox = sandbox
        self._config = config
        self._retries = retries

    def start(self, call: ParsedCall, seed: int) -> Future[CallResult]:
        """Run one call; the future raises only for defects of the sandbox's client."""
        future: Future[CallResult] = Future()
        refused = self._refusal(call)
        if isinstance(refused, CallResult):
            future.set_result(refused)
        else:
            self._attempt(refused, seed, 0, future)
        return future

    def _refusal(self, call: ParsedCall) -> CallResult | PythonCall:
        if call.error is not None or call.name is None or call.arguments is None:
            return CallResult(outcome="bad_json", output=tooltext.bad_json_text(call.error or "", self._config))
        try:
            return check_call(call.name, call.arguments)
        except CallProblem as problem:
            return CallResult(outcome=problem.outcome, output=tooltext.refused_text(problem.message, self._config))

    def _attempt(self, call: PythonCall, seed: int, tries: int, future: Future[CallResult]) -> None:
        def arrived(done: Future[Outcome]) -> None:
            try:
                outcome = done.result()
                if not outcome.infrastructure:
                    text = tooltext.outcome_text(outcome, self._config)
                    future.set_result(CallResult(outcome=outcome.kind, output=text, seconds=outcome.seconds))
                elif tries < self._retries:
                    # A breath: most failures of ours are overload, which an immediate retry would feed.
                    pause = threading.Timer(_FIRST_PAUSE_S * 2**tries, self._attempt, (call, seed, tries + 1, future))
                    pause.daemon = True
                    pause.start()
                else:
                    future.set_result(CallResult(outcome=outcome.kind, output=None, detail=outcome.detail))
            except BaseException as error:  # noqa: BLE001 - in a callback: whoever waits must hear of it
                future.set_exception(error)

        try:
            self._sandbox.submit(call.code, call.input, seed=seed).add_done_callback(arrived)
        except Exception as error:  # noqa: BLE001 - may run in a timer's thread, where nobody hears it
            future.set_exception(error)
