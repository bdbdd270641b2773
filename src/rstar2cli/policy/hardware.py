"""What this machine computes with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """The device that `auto` stands for, and whether bfloat16 is fast on it."""

    device: str
    """torch device with its name."""
    fast_bfloat16: bool
    """Whether the hardware multiplies bfloat16 matrices itself."""
    bfloat16_detail: str
    """What was found."""


def hardware() -> Hardware:
    """Look at the accelerator (CUDA or ROCm), else at the CPU's instruction sets."""
    if torch.cuda.is_available():
        kind = "ROCm" if torch.version.hip else "CUDA"
        name = f"cuda: {torch.cuda.device_count()} x {torch.cuda.get_device_name(0)} ({kind})"
        fast = torch.cuda.is_bf16_supported()
        return Hardware(device=name, fast_bfloat16=fast, bfloat16_detail="supported" if fast else "not supported")
    flags = _cpu_flags()
    found = [flag for flag in ("amx_bf16", "avx512_bf16") if flag in flags]
    detail = ", ".join(found) if found else "emulated in float32; use --set engine.dtype=float32 if it is slow"
    return Hardware(device=f"cpu: {torch.get_num_threads()} threads", fast_bfloat16=bool(found), bfloat16_detail=detail)


def _cpu_flags() -> set[str]:
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return set()
    for line in path.read_text().splitlines():
        if line.startswith("flags"):
            return set(line.partition(":")[2].split())
    return set()
