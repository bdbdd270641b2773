"""Configuration of GRPO-RoC: which rollouts are trained on, the objective, the loop. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from rstar2cli.rollout.config import RolloutConfig
from rstar2cli.training.config import OptimConfig

RocMode = Literal["paper", "released", "random", "none"]
Aggregation = Literal["group-token-mean", "token-mean", "seq-mean-token-mean", "seq-mean-token-sum", "constant"]


@dataclass(frozen=True, kw_only=True)
class RocConfig:
    """Resample on correct: which half of a group is kept."""

    mode: RocMode = "paper"
    """`paper` (negatives uniformly, positives by quality), `released` (the published code's sort and quotas to
    the letter), `random` (uniformly: the control with the same compute), `none` (all)."""
    epsilon: float = 0.1
    """`paper`: a positive is drawn with weight 1/(p_total + epsilon); towards 0 a hard sort, large is uniform."""
    keep_minority: bool = True
    """`paper`: keep at least one rollout of each side that has any; false is the paper to the letter."""
    p_err: bool = True
    """Count the share of failed tool calls in p_total."""
    p_format: bool = True
    """Count missing or repeated answers in p_total."""
    min_negative: int = 2
    """`released`: fewest negatives kept."""
    min_positive: int = 2
    """`released`: fewest positives kept."""

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise ValueError("epsilon must be above 0 (use a small value such as 1e-6 for a hard sort)")
        if self.min_negative < 0 or self.min_positive < 0:
            raise ValueError("min_negative and min_positive can't be negative")


@dataclass(frozen=True, kw_only=True)
class LossConfig:
    """The policy-gradient objective."""

    objective: Literal["clip", "cispo", "gspo"] = "clip"
    """`clip` (PPO with two bounds), `cispo` (clipped weight on log p), `gspo` (one ratio per sequence)."""
    clip_low: float = 0.2
    """The ratio is clipped below 1 − clip_low (GSPO is used with 3e-4)."""
    clip_high: float = 0.28
    """The ratio is clipped above 1 + clip_high (GSPO is used with 4e-4)."""
    dual_clip: float = 0.0
    """Bound on the loss of negative advantages, as a multiple of |A|; 0 = off (verl and the released code: 3)."""
    aggregation: Aggregation = "group-token-mean"
    """How token losses become one number; the default is the paper's, `token-mean` the released code's."""
    constant_length: int = 0
    """L_max of the `constant` aggregation in tokens."""
    advantage: Literal["std", "center"] = "std"
    """`std`: (R − mean) / (std + 1e-6) over the kept; `center`: R − mean."""
    mismatch: Literal["none", "truncated", "masked"] = "none"
    """Weight w = π_old(trainer) / π_sampler on each token: not used, min(w, cap), or w where cap_low ≤ w ≤ cap."""
    mismatch_cap: float = 2.0
    """Upper bound of the mismatch weight."""
    mismatch_low: float = 0.5
    """Lower bound of the mismatch weight (`masked` alone)."""

    def __post_init__(self) -> None:
        if not 0 < self.clip_low < 1 or self.clip_high <= 0:
            raise ValueError("clip_low must lie between 0 and 1 and clip_high above 0")
        if self.dual_clip != 0 and self.dual_clip <= 1:
            raise ValueError("dual_clip must be 0 (off) or above 1")
        if self.aggregation == "constant" and self.constant_length <= 0:
            raise ValueError("aggregation 'constant' needs constant_length above 0")
        if self.objective == "gspo" and self.aggregation != "seq-mean-token-mean":
            raise ValueError("objective 'gspo' needs aggregation 'seq-mean-token-mean'")
        if not 0 <= self.mismatch_low <= 1 <= self.mismatch_cap:
            raise ValueError("mismatch_low must be at most 1 and mismatch_cap at least 1")


@dataclass(frozen=True, kw_only=True)
class TrainRlConfig:
    """GRPO-RoC: rollouts, selection, loss, updates."""

    steps: int = 100
    """Training steps, empty ones included."""
    prompts_per_step: int = 16
    """Problems of a step (the paper: 512)."""
    samples: int = 16
    """Rollouts of each problem, 2G (the paper: 32); RoC keeps half of the usable ones."""
    mini_batches: int = 1
    """Optimizer updates of a step, on whole groups each; 1 = exactly on policy, without a pass for old log-probs."""
    min_groups: int = 1
    """A step in which fewer groups are kept is filled up with new prompts, as far as `refill` allows."""
    refill: int = 0
    """Times a step is filled up, with `prompts_per_step` new slots each; without enough groups it is trained on
    what there is, and skipped if that is nothing."""
    max_empty: int = 10
    """Empty steps in a row after which the run stops: nothing is learned any more."""
    probe_tolerance: float = 0.0
    """Largest mean |Δ log p| between engine and trainer after an update; 0 = by the type of the weights."""
    allow_biased_sampling: bool = False
    """Accept top-p or top-k sampling, whose log-probs are those of another distribution than the trainer's."""
    roc: RocConfig = field(default_factory=RocConfig)
    """Which rollouts are kept."""
    loss: LossConfig = field(default_factory=LossConfig)
    """The objective."""
    optim: OptimConfig = field(default_factory=OptimConfig)
    """Optimizer, schedule, micro-batches, checkpoints (`optim.save_every`)."""
    rollout: RolloutConfig = field(default_factory=RolloutConfig)
    """How rollouts are made; its problems, samples, step and run are set by the training."""

    def __post_init__(self) -> None:
        for name in ("steps", "prompts_per_step", "mini_batches", "min_groups", "max_empty"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        least = 2 if self.roc.mode == "none" else 4
        if self.samples < least:
            raise ValueError(f"samples must be at least {least}: fewer leave nothing to compare after RoC")
        if self.refill < 0 or self.probe_tolerance < 0:
            raise ValueError("refill and probe_tolerance can't be negative")
        self._check_rollout()

    def _check_rollout(self) -> None:
        plain = RolloutConfig()
        for own, name in (("samples", "samples"), ("prompts_per_step", "problems_per_step")):
            if getattr(self.rollout, name) != getattr(plain, name):
                raise ValueError(f"set {own} instead of rollout.{name}")
        if self.rollout.step != plain.step or self.rollout.run != plain.run:
            raise ValueError("rollout.step and rollout.run are set by the training")
        sampling = self.rollout.sampling
        if sampling.temperature <= 0:
            raise ValueError("rollout.sampling.temperature must be above 0: greedy rollouts of a group are all alike")
        if (sampling.top_p < 1 or sampling.top_k > 0) and not self.allow_biased_sampling:
            raise ValueError(
                "rollout.sampling.top_p and top_k bias the gradient (the trainer's log-probs are of the whole "
                "distribution); set top_p=1 and top_k=0, or allow_biased_sampling=true"
            )
