"""From what the keeper saw to an outcome. Pure; the code's own report only refines a status of 1."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import dataclass
from typing import Any

from rstar2cli.sandbox.config import SandboxConfig
from rstar2cli.sandbox.outcome import Outcome, OutcomeKind


@dataclass(frozen=True, kw_only=True)
class Granted:
    """The limits of one call or cell."""

    wall_s: float
    cpu_s: float
    memory_mib: int
    output_mib: int


def granted(config: SandboxConfig, wall_s: float | None = None, memory_mib: int | None = None) -> Granted:
    """The limits of a call that asks for these: time up to ``max_wall_s``, memory not over the configured."""
    wall, cpu = config.wall_s, config.cpu_s
    if wall_s is not None:
        wall = min(max(wall_s, 0.0), max(config.max_wall_s, config.wall_s))
        cpu = max(cpu, wall)
    memory = config.memory_mib if memory_mib is None else max(1, min(memory_mib, config.memory_mib))
    return Granted(wall_s=wall, cpu_s=cpu, memory_mib=memory, output_mib=config.output_mib)


def outcome_of(raw: dict[str, Any], limits: Granted) -> Outcome:
    """The outcome of a raw result (:mod:`rstar2cli.sandbox.inside.call`, or a cell's)."""
    failure = raw.get("failure")
    if failure is not None:
        return Outcome(kind="lost" if raw.get("begun", True) else "setup_failed", detail=failure)
    if not raw["begun"]:
        late = raw["cause"] == "timeout"
        detail = raw["report"].strip() or "the call did not begin within its time"
        return Outcome(kind="overloaded" if late else "setup_failed", detail=detail)
    if raw["cause"] == "timeout" and _starved(raw, limits):
        return Outcome(kind="overloaded", detail=f"no core for {raw['waited_s']:.1f} of {raw['seconds']:.1f} s")
    kind, details = _kind(raw, limits)
    if kind == "lost":
        return Outcome(kind=kind, **details)
    return Outcome(
        kind=kind,
        stdout=raw["stdout"],
        stderr=raw["stderr"],
        stdout_bytes=raw["stdout_bytes"],
        stderr_bytes=raw["stderr_bytes"],
        truncated=raw["truncated"] or kind == "output_limit",
        seconds=raw["seconds"],
        cpu_seconds=raw["cpu_seconds"],
        **details,
    )


def _starved(raw: dict[str, Any], limits: Granted) -> bool:
    """Whether it got no core for over half of its time, and so never had its limit's worth."""
    waited = raw["waited_s"] or 0.0
    return bool(waited > raw["seconds"] / 2 and raw["seconds"] - waited < limits.wall_s)


def _kind(raw: dict[str, Any], limits: Granted) -> tuple[OutcomeKind, dict[str, Any]]:
    met: dict[str, tuple[OutcomeKind, str]] = {
        "timeout": ("timeout", f"{limits.wall_s:g} s"),
        "cpu": ("cpu", f"{limits.cpu_s:g} s"),
        "memory": ("memory", size(limits.memory_mib)),
        "output_limit": ("output_limit", size(limits.output_mib)),
    }
    if raw["cause"] is not None:
        kind, limit = met[raw["cause"]]
        return kind, {"limit": limit}
    code = os.waitstatus_to_exitcode(raw["status"])
    if code < 0:
        return _signal(-code, raw, met)
    if code == 0:
        return "ok", {}
    report = _report(raw["report"])
    if code == 1 and report is not None:
        if report.get("memory") is True:
            return "memory", {"limit": size(limits.memory_mib)}
        return "error", {"error": report["error"], "traceback": report.get("traceback")}
    return "exit", {"exit_code": code}


def _signal(
    number: int, raw: dict[str, Any], met: dict[str, tuple[OutcomeKind, str]]
) -> tuple[OutcomeKind, dict[str, Any]]:
    # The kernel sends SIGXCPU at the CPU limit, and SIGKILL to who ignores it for a second.
    limit_s = float(met["cpu"][1].split()[0])
    if number == signal.SIGXCPU or (number == signal.SIGKILL and raw["cpu_seconds"] >= limit_s):
        return "cpu", {"limit": met["cpu"][1]}
    if number == signal.SIGKILL:
        if raw["out_of_memory"]:
            return "memory", {"limit": met["memory"][1]}
        if raw["sealed"]:  # the filter lets no code send it, so someone outside did
            return "lost", {"detail": "killed from outside of the sandbox"}
    return "signal", {"signal": number}


def _report(text: str) -> dict[str, Any] | None:
    """A well-formed report; the code is untrusted, so anything else counts as none."""
    try:
        report = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(report, dict) or not isinstance(report.get("error"), str):
        return None
    if not isinstance(report.get("traceback"), str | None):
        return None
    return report


def size(mib: int) -> str:
    """A size as the model reads it: `1 GiB`, `8 MiB`."""
    return f"{mib // 1024} GiB" if mib % 1024 == 0 else f"{mib} MiB"
