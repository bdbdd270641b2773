"""The one place that decides on which device, in which type and with which attention a model runs."""

from __future__ import annotations

from typing import Any, Literal

import torch

from rstar2cli.core.errors import EnvironmentMissing, UsageError
from rstar2cli.core.process import ranks
from rstar2cli.policy.attention import NAME as BMM
from rstar2cli.policy.hardware import hardware
from rstar2cli.policy.lean import make_lean

Dtype = Literal["auto", "float32", "bfloat16"]
_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def pick_device(device: str = "auto") -> torch.device:
    """The torch device for a name; ``auto`` is this rank's accelerator if there is one, else the CPU.

    Raises ``UsageError`` for a name torch doesn't know, ``EnvironmentMissing`` for a device this machine lacks.
    """
    if device == "auto":
        device = f"cuda:{ranks().local_rank}" if torch.cuda.is_available() else "cpu"
    try:
        chosen = torch.device(device)
    except RuntimeError:
        raise UsageError(f"device {device!r}: not a torch device", hint="use auto, cpu, cuda or cuda:0") from None
    if chosen.type == "cuda" and (chosen.index or 0) >= torch.cuda.device_count():
        raise EnvironmentMissing(
            f"device {device!r}: this machine has {torch.cuda.device_count()} accelerators", hint="see rstar2 doctor"
        )
    return chosen


def pick_dtype(dtype: Dtype = "auto", device: torch.device | None = None) -> torch.dtype:
    """The type of the weights; ``auto`` is bfloat16 where the hardware multiplies it, else float32."""
    if dtype != "auto":
        return _DTYPES[dtype]
    if device is not None and device.type not in ("cuda", "cpu"):
        return torch.float32
    return torch.bfloat16 if hardware().fast_bfloat16 else torch.float32


def prepare_for_training(model: Any) -> str:
    """Give the model the attention and layers that train fastest on its device; the attention's name.

    On a CPU the backward pass of the fused kernels is several times slower than plain batched
    matrix products (:mod:`rstar2cli.policy.attention`), and memory is what elementwise layers wait for
    (:mod:`rstar2cli.policy.lean`); everywhere else SDPA and the plain layers are right.
    """
    config = model.config
    windowed = getattr(config, "sliding_window", None) and getattr(config, "use_sliding_window", True)
    plain = set(getattr(config, "layer_types", None) or ["full_attention"]) == {"full_attention"} and not windowed
    device = next(model.parameters()).device
    name = BMM if device.type == "cpu" and plain else "sdpa"
    model.set_attn_implementation(name)
    if device.type == "cpu":
        make_lean(model)
    return name
