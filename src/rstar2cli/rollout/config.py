"""Configuration of rollouts. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass, field

from rstar2cli.dialogue.config import DialogueConfig
from rstar2cli.engines.base import Sampling
from rstar2cli.engines.config import EngineConfig
from rstar2cli.grading.config import GradingConfig
from rstar2cli.sandbox.config import SandboxConfig


@dataclass(frozen=True, kw_only=True)
class RolloutConfig:
    """How a model is let loose on problems."""

    run: str = "rollout"
    """Name of the run; first part of every trajectory id."""
    step: int = 0
    """0 = all problems in order; k ≥ 1 = the problems of training step k."""
    problems_per_step: int = 0
    """Problems of one step, taken from the seeded permutation; 0 = all."""
    samples: int = 1
    """Trajectories of each problem (a group)."""
    max_turns: int = 10
    """Turns of the model in one trajectory; calls in the last turn are not run."""
    max_prompt: int = 2048
    """Longest rendered prompt in tokens; problems with a longer one are rejected."""
    max_response: int = 8192
    """Tokens after the prompt: the model's, the tool's and the template's (less if the model's context is full)."""
    max_turn_tokens: int = 0
    """Most tokens of one turn; 0 = only `max_response` counts."""
    in_flight: int = 0
    """Trajectories under way at once; 0 = `engine.max_running`. The free cache of the engine limits it too."""
    tool_retries: int = 2
    """Times a tool call is tried again after a failure of ours, before its trajectory is lost."""
    max_lost: float = 0.05
    """Share of lost and undecided trajectories past which the run stops (from 20 trajectories on)."""
    deterministic: bool = False
    """Generate in waves of fixed shape, so that the tokens depend on the seed alone; slower."""
    wave: int = 32
    """Trajectories of a deterministic wave, which is also its unit of resume."""
    save_every: int = 256
    """Trajectories of a finished part: what a killed run can lose (deterministic: each wave is a part)."""
    sampling: Sampling = field(default_factory=Sampling)
    """How tokens are drawn."""
    engine: EngineConfig = field(default_factory=EngineConfig)
    """The generation engine."""
    sandbox: SandboxConfig = field(default_factory=SandboxConfig)
    """Where the model's code runs."""
    dialogue: DialogueConfig = field(default_factory=DialogueConfig)
    """Prompts and tool texts."""
    grading: GradingConfig = field(default_factory=GradingConfig)
    """How answers are found and compared."""

    def __post_init__(self) -> None:
        for name in ("samples", "max_turns", "max_prompt", "max_response", "wave", "save_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("step", "problems_per_step", "max_turn_tokens", "in_flight", "tool_retries"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative")
        if not 0 <= self.max_lost <= 1:
            raise ValueError(f"max_lost is a share between 0 and 1, not {self.max_lost}")
        if not self.run or any(mark in self.run for mark in ":/\n"):
            raise ValueError(f"run {self.run!r}: a name without ':' and '/', which separate the parts of an id")
