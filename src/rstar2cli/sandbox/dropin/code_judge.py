"""The endpoints of the code judge that rStar2's released code calls.

``/run``, ``/run/batch``, ``/run/long-batch``, ``/judge``, ``/judge/batch``, ``/judge/long-batch``,
``/status``, ``/ping``. What failed on our side is ``queue_timeout``, the one reason that its client
sends again; it would show ``internal_error`` to the model. Calls wait for room instead of being refused.
"""

from __future__ import annotations

import asyncio
import uuid
from typing import Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rstar2cli.sandbox.config import ServeConfig
from rstar2cli.sandbox.desk import Desk
from rstar2cli.sandbox.gate import Gate, Refused, json_response
from rstar2cli.sandbox.outcome import Outcome

_LIMITS = frozenset({"timeout", "cpu"})


class Submission(msgspec.Struct, kw_only=True):
    """One program. Fields that are not known here are ignored, as there."""

    type: Literal["python", "cpp", "math"]
    """Only `python` is run."""
    solution: str
    """The program."""
    sub_id: str | None = None
    """Comes back with the result; made up if there is none."""
    input: str | None = None
    """Standard input."""
    expected_output: str | None = None
    """What it must print, spaces around it aside, to be a success."""


class BatchSubmission(msgspec.Struct, kw_only=True):
    """Several programs."""

    submissions: list[Submission]
    """The programs; results come in their order."""
    type: Literal["batch"] = "batch"
    sub_id: str | None = None
    """Comes back with the results."""


class JudgeResult(msgspec.Struct, kw_only=True):
    """Whether a program did what it should."""

    sub_id: str
    success: bool
    """It ended well and printed what was expected."""
    run_success: bool
    """It ended well."""
    cost: float
    """Seconds that it ran."""
    reason: Literal["unspecified", "worker_timeout", "queue_timeout", "invalid_input"]
    """`unspecified` for whatever the program did itself."""


class SubmissionResult(JudgeResult, kw_only=True):
    """The same, with what it printed."""

    stdout: str | None
    stderr: str | None


class BatchResults(msgspec.Struct, kw_only=True):
    """Results of a batch."""

    sub_id: str
    results: list[SubmissionResult]


class BatchJudgements(msgspec.Struct, kw_only=True):
    """Results of a batch, without what was printed."""

    sub_id: str
    results: list[JudgeResult]


class Status(msgspec.Struct, kw_only=True):
    """Answer of ``/status``."""

    queue: int
    """Programs that wait."""
    num_workers: int
    """Programs run at once."""


class CodeJudge:
    """Handlers."""

    def __init__(self, desk: Desk, gate: Gate, config: ServeConfig) -> None:
        """``desk``: runs the programs; ``gate``: admits requests."""
        self._desk, self._gate, self._config = desk, gate, config

    async def run(self, request: Request) -> Response:
        """Run one program."""
        return json_response(await self._result(await self._gate.body(request, Submission)))

    async def judge(self, request: Request) -> Response:
        """Run one program and leave out what it printed."""
        return json_response(_short(await self._result(await self._gate.body(request, Submission))))

    async def run_batch(self, request: Request) -> Response:
        """Run several programs."""
        sub_id, results = await self._results(request)
        return json_response(BatchResults(sub_id=sub_id, results=results))

    async def judge_batch(self, request: Request) -> Response:
        """Run several programs and leave out what they printed."""
        sub_id, results = await self._results(request)
        return json_response(BatchJudgements(sub_id=sub_id, results=[_short(result) for result in results]))

    async def status(self, request: Request) -> Response:
        """How many programs wait."""
        self._gate.admit(request)
        stats = self._desk.sandbox.stats()
        waiting = int(stats["waiting"]) + self._desk.room.waiting
        return json_response(Status(queue=waiting, num_workers=self._desk.sandbox.workers))

    async def ping(self, request: Request) -> Response:
        """That it is there."""
        return json_response("pong")

    async def _results(self, request: Request) -> tuple[str, list[SubmissionResult]]:
        batch = await self._gate.body(request, BatchSubmission)
        if not batch.submissions:
            raise Refused(400, "submissions is empty")
        if len(batch.submissions) > self._config.batch:
            raise Refused(413, f"{len(batch.submissions)} submissions in a batch, at most {self._config.batch}")
        results = await asyncio.gather(*map(self._result, batch.submissions))
        return batch.sub_id or str(uuid.uuid4()), list(results)

    async def _result(self, submission: Submission) -> SubmissionResult:
        sub_id = submission.sub_id or str(uuid.uuid4())
        if submission.type != "python":
            return SubmissionResult(
                sub_id=sub_id, success=False, run_success=False, cost=0.0, reason="invalid_input", stdout="",
                stderr=f"this service runs python only, not {submission.type}",
            )  # fmt: skip
        outcome = await self._desk.run_in_turn(
            self._desk.call(submission.solution, submission.input or ""), self._config.wait_s
        )
        return _judged(sub_id, submission, outcome)


def _judged(sub_id: str, submission: Submission, outcome: Outcome) -> SubmissionResult:
    if outcome.infrastructure:
        return SubmissionResult(
            sub_id=sub_id, success=False, run_success=False, cost=0.0, reason="queue_timeout", stdout="", stderr=""
        )
    ended_well = outcome.kind == "ok"
    expected = submission.expected_output
    return SubmissionResult(
        sub_id=sub_id,
        success=ended_well and (expected is None or outcome.stdout.strip() == expected.strip()),
        run_success=ended_well,
        cost=outcome.seconds,
        reason="worker_timeout" if outcome.kind in _LIMITS else "unspecified",
        stdout=outcome.stdout,
        stderr=outcome.stderr + (outcome.traceback or outcome.error or _why(outcome)),
    )


def _why(outcome: Outcome) -> str:
    """What ended a program that raised nothing, for its standard error."""
    if outcome.kind == "ok":
        return ""
    if outcome.kind == "exit":
        return f"exit status {outcome.exit_code}\n"
    if outcome.kind == "signal":
        return f"killed by signal {outcome.signal}\n"
    return f"{outcome.kind.replace('_', ' ')}: {outcome.limit}\n"


def _short(result: SubmissionResult) -> JudgeResult:
    return JudgeResult(
        sub_id=result.sub_id,
        success=result.success,
        run_success=result.run_success,
        cost=result.cost,
        reason=result.reason,
    )
