"""SandboxFusion's ``/run_code``. What failed on our side is its ``SandboxError``."""

from __future__ import annotations

import base64
import binascii
from typing import Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rstar2cli.sandbox.config import ServeConfig
from rstar2cli.sandbox.desk import Desk
from rstar2cli.sandbox.gate import Gate, Refused, json_response
from rstar2cli.sandbox.outcome import Outcome

_PYTHON = frozenset({"python", "python3"})


class RunCode(msgspec.Struct, kw_only=True):
    """One program. Fields that are not known here are ignored, as there."""

    code: str
    """The program."""
    language: str = "python"
    """Only `python` is run."""
    run_timeout: float = 10.0
    """Wall-clock limit in seconds, up to the service's ``max_wall_s``."""
    memory_limit_MB: int = -1
    """Memory limit; -1 or more than the service's own is the service's own."""
    stdin: str | None = None
    """Standard input."""
    files: dict[str, str | None] = {}
    """Files of its directory, base64."""


class CommandResult(msgspec.Struct, kw_only=True):
    """What became of the program."""

    status: Literal["Finished", "Error", "TimeLimitExceeded"]
    execution_time: float | None
    """Seconds that it ran."""
    return_code: int | None
    """Null if it was stopped by a limit of time."""
    stdout: str | None
    stderr: str | None


class RunCodeResult(msgspec.Struct, kw_only=True):
    """Answer of ``/run_code``."""

    status: Literal["Success", "Failed", "SandboxError"]
    message: str
    """For `SandboxError`, what went wrong."""
    compile_result: None = None
    run_result: CommandResult | None = None
    executor_pod_name: None = None
    files: dict[str, str] = {}


class Fusion:
    """Handlers."""

    def __init__(self, desk: Desk, gate: Gate, config: ServeConfig) -> None:
        """``desk``: runs the programs; ``gate``: admits requests."""
        self._desk, self._gate, self._config = desk, gate, config

    async def run_code(self, request: Request) -> Response:
        """Run one program."""
        asked = await self._gate.body(request, RunCode)
        if asked.language not in _PYTHON:
            return json_response(
                RunCodeResult(status="SandboxError", message=f"this service runs python only, not {asked.language}")
            )
        call = self._desk.call(
            asked.code,
            asked.stdin or "",
            wall_s=asked.run_timeout if asked.run_timeout > 0 else None,
            memory_mib=asked.memory_limit_MB if asked.memory_limit_MB > 0 else None,
            files=_files(asked.files),
        )
        return json_response(_result(await self._desk.run_in_turn(call, self._config.wait_s)))


def _files(files: dict[str, str | None]) -> dict[str, bytes]:
    decoded = {}
    for name, content in files.items():
        try:
            decoded[name] = base64.b64decode(content or "", validate=True)
        except binascii.Error:
            raise Refused(400, f"files: {name!r} is not base64") from None
    return decoded


def _result(outcome: Outcome) -> RunCodeResult:
    if outcome.infrastructure:
        return RunCodeResult(status="SandboxError", message=f"{outcome.kind}: {outcome.detail or ''}".rstrip(": "))
    late = outcome.kind in ("timeout", "cpu")
    code = {"ok": 0, "exit": outcome.exit_code, "signal": -(outcome.signal or 0)}.get(outcome.kind, 1)
    result = CommandResult(
        status="TimeLimitExceeded" if late else "Finished",
        execution_time=outcome.seconds,
        return_code=None if late else code,
        stdout=outcome.stdout,
        stderr=outcome.stderr + (outcome.traceback or outcome.error or ""),
    )
    return RunCodeResult(status="Success" if outcome.kind == "ok" else "Failed", message="", run_result=result)
