"""Configuration of the optimization that sft and train-rl share. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class OptimConfig:
    """Optimizer, schedule, micro-batches and checkpoints."""

    lr: float = 1e-6
    """Peak learning rate."""
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """Course of the learning rate after the warm-up."""
    warmup: float = 0.0
    """Linear warm-up: steps, or below 1 the share of all steps."""
    final_lr: float = 0.0
    """Where `linear` and `cosine` end, as a share of the peak."""
    beta1: float = 0.9
    """AdamW: decay of the mean gradient."""
    beta2: float = 0.999
    """AdamW: decay of the mean square."""
    epsilon: float = 1e-8
    """AdamW: added to the root of the mean square."""
    weight_decay: float = 0.0
    """AdamW: decay of matrices; norms and biases never decay."""
    max_grad_norm: float = 1.0
    """The gradient is scaled down to this norm; 0 = off."""
    micro_tokens: int = 2048
    """Tokens, padding included, that go through the model together; a longer row goes alone."""
    head_chunk: int = 512
    """Counted positions per chunk of the output head."""
    recompute: bool = False
    """Recompute each layer in the backward pass: about a third more compute, far less memory."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Type the model computes in; master weights, gradients and AdamW are float32 always."""
    device: str = "auto"
    """torch device; auto = the accelerator if there is one, else the CPU."""
    processes: int = 0
    """Number of processes expected; the run is refused if another number started. 0 = not checked."""
    save_every: int = 0
    """Steps between checkpoints; 0 = only when stopped early."""
    keep: int = 1
    """Newest checkpoints kept."""

    def __post_init__(self) -> None:
        if self.lr <= 0 or self.epsilon <= 0:
            raise ValueError("lr and epsilon must be above 0")
        if not (0 <= self.beta1 < 1 and 0 <= self.beta2 < 1):
            raise ValueError("beta1 and beta2 must lie in [0, 1)")
        if self.warmup < 0 or not 0 <= self.final_lr <= 1:
            raise ValueError("warmup can't be negative and final_lr must lie in [0, 1]")
        if self.weight_decay < 0 or self.max_grad_norm < 0:
            raise ValueError("weight_decay and max_grad_norm can't be negative")
        if self.micro_tokens < 1 or self.head_chunk < 1 or self.keep < 1:
            raise ValueError("micro_tokens, head_chunk and keep must be at least 1")
        if self.save_every < 0 or self.processes < 0:
            raise ValueError("save_every and processes can't be negative")
