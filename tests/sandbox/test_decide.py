"""Outcomes from what the supervisor saw."""

from __future__ import annotations

from typing import Any

import pytest

from rstar2cli.sandbox.config import SandboxConfig
from rstar2cli.sandbox.decide import granted, outcome_of, size


def raw(**changes: Any) -> dict[str, Any]:
    base = {
        "cause": None,
        "status": 0,
        "seconds": 0.1,
        "cpu_seconds": 0.1,
        "begun": True,
        "report": "",
        "failure": None,
        "out_of_memory": False,
        "sealed": True,
        "waited_s": None,
    }
    streams = {"stdout": "", "stderr": "", "stdout_bytes": 0, "stderr_bytes": 0, "truncated": False}
    return {**base, **streams, **changes}


@pytest.mark.parametrize(
    "seen, kind",
    [
        (raw(), "ok"),
        (raw(report='{"error": "E"}'), "ok"),
        (raw(status=1 << 8, report='{"error": "E"}'), "error"),
        (raw(status=1 << 8, report='{"error": "E", "memory": true}'), "memory"),
        (raw(status=1 << 8, report='{"error": 5}'), "exit"),
        (raw(status=1 << 8, report='{"error": "E", "traceback": 5}'), "exit"),
        (raw(status=2 << 8, report='{"error": "E"}'), "exit"),
        (raw(status=9, cause="timeout"), "timeout"),
        (raw(status=9, cause="output_limit"), "output_limit"),
        (raw(status=9), "lost"),
        (raw(status=9, sealed=False), "signal"),
        (raw(status=9, out_of_memory=True), "memory"),
        (raw(cause="memory"), "memory"),
        (raw(cause="cpu"), "cpu"),
        (raw(failure="its keeper died"), "lost"),
        (raw(failure="fork", begun=False), "setup_failed"),
        ({"failure": "the session's process has ended"}, "lost"),
        (raw(status=9, cpu_seconds=4.0), "cpu"),
        (raw(status=24), "cpu"),
        (raw(status=1 << 8, begun=False), "setup_failed"),
        (raw(status=9, begun=False, cause="timeout"), "overloaded"),
        (raw(status=9, cause="timeout", seconds=12.0, waited_s=8.1), "overloaded"),
        (raw(status=9, cause="timeout", seconds=9.0, waited_s=5.0), "timeout"),
        (raw(status=9, cause="timeout", seconds=4.0, waited_s=1.9), "timeout"),
        (raw(waited_s=3.0), "ok"),
    ],
)
def test_kinds(seen: dict[str, Any], kind: str) -> None:
    assert outcome_of(seen, granted(SandboxConfig())).kind == kind


def test_what_a_call_may_ask_for() -> None:
    config = SandboxConfig(wall_s=4, cpu_s=4, memory_mib=512, max_wall_s=20)
    assert (granted(config).wall_s, granted(config).cpu_s, granted(config).memory_mib) == (4, 4, 512)
    longer = granted(config, 10, 2048)
    assert (longer.wall_s, longer.cpu_s, longer.memory_mib) == (10, 10, 512)
    assert (granted(config, 100).wall_s, granted(config, 1, 64).memory_mib) == (20, 64)


def test_sizes_read_well() -> None:
    assert (size(1024), size(8), size(1536), size(2048)) == ("1 GiB", "8 MiB", "1536 MiB", "2 GiB")
