"""Configuration of GRPO-RoC: which rollouts are trained on, the objective, the loop. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
