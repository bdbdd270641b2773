"""Configuration of supervised fine-tuning; the defaults are the paper's. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from rstar2cli.dialogue.config import DialogueConfig
from rstar2cli.training.config import OptimConfig


@dataclass(frozen=True, kw_only=True)
class SftOptimConfig(OptimConfig):
    """The optimization with the paper's values for SFT."""

    lr: float = 5e-6
    """Peak learning rate."""
    schedule: Literal["constant", "linear", "cosine"] = "cosine"
    """Course of the learning rate after the warm-up."""
    warmup: float = 0.04
    """Linear warm-up: steps, or below 1 the share of all steps."""


@dataclass(frozen=True, kw_only=True)
class SftConfig:
    """Supervised fine-tuning on conversations."""

    epochs: int = 3
    """Times that every conversation is seen."""
    batch: int = 128
    """Conversations per optimizer step."""
    max_length: int = 0
    """Longest conversation in tokens; longer ones are rejected, never cut. 0 = the model's own limit."""
    optim: SftOptimConfig = field(default_factory=SftOptimConfig)
    """Optimizer, schedule, micro-batches, checkpoints."""
    dialogue: DialogueConfig = field(default_factory=DialogueConfig)
    """How a conversation becomes tokens; rollout, RL and evaluation must use the same."""

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 1:
            raise ValueError("epochs and batch must be at least 1")
        if self.max_length < 0:
            raise ValueError("max_length can't be negative (0 = the model's own limit)")
