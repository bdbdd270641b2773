"""Configuration of evaluations: the published settings. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass, field

from rstar2cli.engines.base import Sampling
from rstar2cli.rollout.config import RolloutConfig


@dataclass(frozen=True, kw_only=True)
class EvalSampling(Sampling):
    """How tokens are drawn in an evaluation."""

    temperature: float = 0.6
    """Divides the logits; 0 = greedy."""


@dataclass(frozen=True, kw_only=True)
class EvalRolloutConfig(RolloutConfig):
    """Rollouts of an evaluation: 16 samples, 30 turns, 30K tokens, as published."""

    run: str = "eval"
    """Name of the run; first part of every trajectory id."""
    samples: int = 16
    """Samples of each problem."""
    max_turns: int = 30
    """Turns of the model in one trajectory; calls in the last turn are not run."""
    max_response: int = 30_000
    """Tokens after the prompt: the model's, the tool's and the template's (less if the model's context is full)."""
    sampling: EvalSampling = field(default_factory=EvalSampling)
    """How tokens are drawn."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.step or self.problems_per_step:
            raise ValueError("step and problems_per_step are for training; choose problems with --limit or --where")


@dataclass(frozen=True, kw_only=True)
class EvalConfig:
    """What is measured, and how the model is run."""

    benchmark: str = ""
    """Name written into every score; empty = the source of each problem."""
    rollout: EvalRolloutConfig = field(default_factory=EvalRolloutConfig)
    """How the model is let loose on the problems."""
