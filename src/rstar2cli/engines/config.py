"""Which engine runs, and how large."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

EngineName = Literal["transformers", "vllm", "http"]


@dataclass(frozen=True, kw_only=True)
class EngineConfig:
    """The generation engine."""

    name: EngineName = "transformers"
    """`transformers` (embedded), `vllm` (in the process; needs the extra), `http` (vLLM servers elsewhere)."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Type of weights and cache; auto = bfloat16 where the hardware has it."""
    device: str = "auto"
    """torch device; auto = the accelerator if there is one, else the CPU."""
    max_running: int = 64
    """Most requests decoded at once."""
    capacity_tokens: int = 0
    """KV-cache tokens; 0 = what `max_running` requests of `max_length` need, capped by `memory_share`."""
    memory_share: float = 0.4
    """Share of the device's memory that the cache may take (`vllm`: cache and weights together)."""
    max_length: int = 0
    """Longest prompt plus response in tokens; 0 = the model's own limit."""
    endpoints: tuple[str, ...] = ()
    """For `http`: addresses of the servers."""

    def __post_init__(self) -> None:
        if self.max_running < 1:
            raise ValueError(f"max_running must be at least 1, not {self.max_running}")
        if not 0 < self.memory_share <= 1:
            raise ValueError(f"memory_share is over 0 and at most 1, not {self.memory_share}")
        if self.capacity_tokens < 0 or self.max_length < 0:
            raise ValueError("capacity_tokens and max_length must not be negative; 0 = automatic")
