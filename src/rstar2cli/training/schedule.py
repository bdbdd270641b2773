"""Learning rate by step."""

from __future__ import annotations

import math

from rstar2cli.training.config import OptimConfig


def learning_rate(config: OptimConfig, step: int, total: int) -> float:
    """Rate of step ``step`` (from 1) of ``total``: linear warm-up to the peak, then the schedule.

    The last warm-up step has the peak; ``linear`` and ``cosine`` reach ``final_lr`` after the last step.
    """
    warmup = config.warmup if config.warmup >= 1 else math.ceil(config.warmup * total)
    if step <= warmup:
        return config.lr * step / warmup
    if config.schedule == "constant":
        return config.lr
    done = min(1.0, (step - 1 - warmup) / max(1.0, total - warmup))
    fall = 1 - done if config.schedule == "linear" else (1 + math.cos(math.pi * done)) / 2
    return config.lr * (config.final_lr + (1 - config.final_lr) * fall)
