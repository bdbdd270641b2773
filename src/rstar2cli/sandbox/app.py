"""The service's application: every route once, with its handler and its description."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rstar2cli import __version__
from rstar2cli.sandbox.config import ServeConfig
from rstar2cli.sandbox.desk import Desk
from rstar2cli.sandbox.dropin import code_judge, fusion
from rstar2cli.sandbox.gate import Gate, Refused, json_response
from rstar2cli.sandbox.metrics import Metrics
from rstar2cli.sandbox.openapi import Described, document
from rstar2cli.sandbox.outcome import Outcome, ServedSandbox
from rstar2cli.sandbox.service import Native
from rstar2cli.sandbox.wire import (
    BatchRequest,
    BatchResult,
    CallRequest,
    CellRequest,
    Health,
    SessionOpened,
    SessionRequest,
)

Handler = Callable[[Request], Awaitable[Response]]
Table = list[tuple[Described, Handler]]


def create_app(sandbox: ServedSandbox, config: ServeConfig) -> Starlette:
    """The ASGI application over a sandbox that the caller closes."""
    desk, gate = Desk(sandbox, config.queue), Gate(config)
    table = [*_native(Native(desk, gate, config)), *_drop_ins(desk, gate, config)]
    described = [description for description, _ in table]

    async def openapi(request: Request) -> Response:
        return json_response(document([*described, itself], __version__))

    itself = Described(method="GET", path="/openapi.json", summary="This document", token=False)
    return Starlette(
        routes=[
            Route(described.path, _answering(handler, desk.metrics), methods=[described.method])
            for described, handler in [*table, (itself, openapi)]
        ]
    )


def _native(native: Native) -> Table:
    session = "/v1/sessions/{session}"
    return [
        (
            Described(method="POST", path="/v1/run", summary="Run one call", body=CallRequest, answer=Outcome),
            native.run,
        ),
        (
            Described(
                method="POST", path="/v1/run/batch", summary="Run many calls; a line as each is finished",
                body=BatchRequest, answer=BatchResult, media_type="application/jsonl",
            ),
            native.run_batch,
        ),
        (
            Described(
                method="POST", path="/v1/sessions", summary="Open a session", body=SessionRequest,
                answer=SessionOpened, status=201,
            ),
            native.open_session,
        ),
        (
            Described(
                method="POST", path=f"{session}/cells", summary="Run a session's next cell", body=CellRequest,
                answer=Outcome,
            ),
            native.run_cell,
        ),
        (Described(method="DELETE", path=session, summary="End a session", status=204), native.close_session),
        (
            Described(method="GET", path="/health", summary="Whether it works, and how full it is", answer=Health,
                      token=False),
            native.health,
        ),
        (
            Described(method="GET", path="/metrics", summary="For Prometheus", media_type="text/plain", token=False),
            native.metrics,
        ),
    ]  # fmt: skip


def _drop_ins(desk: Desk, gate: Gate, config: ServeConfig) -> Table:
    judge, fusion_api = code_judge.CodeJudge(desk, gate, config), fusion.Fusion(desk, gate, config)

    def one(path: str, handler: Handler, answer: type) -> tuple[Described, Handler]:
        body = code_judge.Submission
        return Described(method="POST", path=path, summary="Code judge", body=body, answer=answer), handler

    def many(path: str, handler: Handler, answer: type) -> tuple[Described, Handler]:
        body = code_judge.BatchSubmission
        return Described(method="POST", path=path, summary="Code judge: several", body=body, answer=answer), handler

    return [
        one("/run", judge.run, code_judge.SubmissionResult),
        one("/judge", judge.judge, code_judge.JudgeResult),
        many("/run/batch", judge.run_batch, code_judge.BatchResults),
        many("/run/long-batch", judge.run_batch, code_judge.BatchResults),
        many("/judge/batch", judge.judge_batch, code_judge.BatchJudgements),
        many("/judge/long-batch", judge.judge_batch, code_judge.BatchJudgements),
        (
            Described(method="GET", path="/status", summary="Code judge: how many wait", answer=code_judge.Status),
            judge.status,
        ),
        (
            Described(method="GET", path="/ping", summary="Code judge: that it is there", answer=str, token=False),
            judge.ping,
        ),
        (
            Described(
                method="POST", path="/run_code", summary="SandboxFusion: run one program", body=fusion.RunCode,
                answer=fusion.RunCodeResult,
            ),
            fusion_api.run_code,
        ),
    ]  # fmt: skip


def _answering(handler: Handler, metrics: Metrics) -> Handler:
    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except Refused as refused:
            metrics.refused(refused.status)
            return refused.response

    return answer
