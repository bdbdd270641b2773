"""New weights into the generation engine, and the proof that it uses all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from rstar2cli.core.errors import EnvironmentMissing
from rstar2cli.engines.base import Engine, Request, Sampling
from rstar2cli.policy.checkpoint import named_weights
from rstar2cli.policy.logprobs import masked_logprobs
from rstar2cli.policy.packing import TrainSequence, pack

PROBE_TOKENS = 16
TOLERANCE = {torch.float32: 2e-3, torch.bfloat16: 0.2, torch.float16: 0.1}
"""Largest mean |Δ log p| allowed on the probe, by the coarser type of engine and trainer.

Measured between engine and trainer on the same weights: 8e-6 in float32, 0.05 in bfloat16.
"""


def sync_weights(model: Any, engine: Engine, version: str, probe_ids: Sequence[int], *, tolerance: float) -> float:
    """Load the model's weights into the engine as ``version``; the mean |Δ log p| of the probe.

    Raises ``EnvironmentMissing`` if the engine then writes with other weights than the model has.
    """
    engine.load_weights(named_weights(model, explicit_head=True), version)
    return check_probe(model, engine, version, probe_ids, tolerance=tolerance)


def check_probe(model: Any, engine: Engine, version: str, probe_ids: Sequence[int], *, tolerance: float) -> float:
    """Let the engine continue ``probe_ids`` by some tokens and compare their log-probs with the model's.

    Returns the mean |Δ log p|. Raises ``EnvironmentMissing`` above ``tolerance``.
    """
    request = Request(prompt_ids=probe_ids, max_tokens=PROBE_TOKENS, stop_ids=(), seed=0, sampling=Sampling())
    completion = engine.submit(request).result()
    if completion.policy != version:
        raise EnvironmentMissing(
            f"the engine writes as {completion.policy!r} after it was given the weights {version!r}",
            hint="this is a fault of the engine: try another one (rollout.engine.name)",
        )
    ours = _score(model, list(probe_ids), completion.ids)
    difference = float((ours - torch.tensor(completion.logprobs)).abs().mean())
    if not difference <= tolerance:  # NaN fails too
        raise EnvironmentMissing(
            f"weights {version!r}: engine and trainer differ by {difference:.2g} in mean log-prob on a probe "
            f"(allowed: {tolerance:g})",
            hint="the engine kept a part of the old weights; a model whose head is tied to its embedding is the known "
            "case: a copy of the head stays as it was. Untie it, or use another engine (rollout.engine.name)",
        )
    return difference


def _score(model: Any, prompt: list[int], written: list[int]) -> torch.Tensor:
    """(n,) log-probs of the written tokens under the model."""
    sequence = TrainSequence(ids=[*prompt, *written], mask=[False] * len(prompt) + [True] * len(written))
    (micro,) = pack([sequence], len(sequence.ids))
    with torch.no_grad():
        return masked_logprobs(model, micro.to(next(model.parameters()).device)).float().cpu()
