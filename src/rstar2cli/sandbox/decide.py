"""From what the supervisor saw to an outcome. Pure; the child's own report only refines an exit status of 1."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

from rstar2cli.sandbox.config import SandboxConfig
from rstar2cli.sandbox.outcome import Outcome, OutcomeKind


def outcome_of(raw: dict[str, Any], config: SandboxConfig) -> Outcome:
    """The outcome of a raw result (:func:`rstar2cli.sandbox.inside.supervise.supervise`)."""
    if "setup_failed" in raw:
        return Outcome(kind="setup_failed", detail=str(raw["setup_failed"]))
    if not raw["begun"]:
        late = raw["cause"] == "timeout"
        detail = raw["stderr"].strip() or "the call did not begin within its time"
        return Outcome(kind="overloaded" if late else "setup_failed", detail=detail)
    if raw["cause"] == "timeout" and _starved(raw, config):
        return Outcome(kind="overloaded", detail=f"no core for {raw['waited_s']:.1f} of {raw['seconds']:.1f} s")
    kind, details = _kind(raw, config)
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


def _starved(raw: dict[str, Any], config: SandboxConfig) -> bool:
    """Whether it got no core for over half of its time, and so never had its limit's worth."""
    waited = raw["waited_s"] or 0.0
    return bool(waited > raw["seconds"] / 2 and raw["seconds"] - waited < config.wall_s)


def _kind(raw: dict[str, Any], config: SandboxConfig) -> tuple[OutcomeKind, dict[str, Any]]:
    if raw["cause"] == "timeout":
        return "timeout", {"limit": f"{config.wall_s:g} s"}
    if raw["cause"] == "output_limit":
        return "output_limit", {"limit": size(config.output_mib)}
    code = os.waitstatus_to_exitcode(raw["status"])
    if code < 0:
        return _signal(-code, raw, config)
    if code == 0:
        return "ok", {}
    report = _report(raw["report"])
    if code == 1 and report is not None:
        if report.get("memory") is True:
            return "memory", {"limit": size(config.memory_mib)}
        return "error", {"error": report["error"], "traceback": report.get("traceback")}
    return "exit", {"exit_code": code}


def _signal(number: int, raw: dict[str, Any], config: SandboxConfig) -> tuple[OutcomeKind, dict[str, Any]]:
    # The kernel sends SIGXCPU at the CPU limit and SIGKILL to who ignores it for a second.
    spent = number == signal.SIGKILL and raw["cpu_seconds"] >= config.cpu_s
    if number == signal.SIGXCPU or spent:
        return "cpu", {"limit": f"{config.cpu_s:g} s"}
    return "signal", {"signal": number}


def _report(text: str) -> dict[str, Any] | None:
    """A well-formed report; the child is untrusted, so anything else counts as none."""
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
