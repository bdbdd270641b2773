"""Whether a model may compute what the rows of a micro-batch begin with once for all of them."""

from __future__ import annotations

from typing import Any

import torch

from rstar2cli.policy.attention import LONGEST
from rstar2cli.policy.attention import NAME as BMM
from rstar2cli.policy.logprobs import masked_logprobs
from rstar2cli.policy.packing import SHARED_AT_LEAST, TrainSequence, pack

_FIRST = 1
"""The tokens of the probe count up from here: every vocabulary has them."""


def share_up_to(model: Any) -> int:
    """Longest rows that :func:`rstar2cli.policy.packing.pack` may let share a prefix for this model; 0 = none.

    The attention must be the one that knows the layout, and the model must hand the layout on to it:
    a probe compares the log-probs of three short rows computed together and one by one.
    """
    if model.config._attn_implementation != BMM:
        return 0
    prefix = list(range(_FIRST, _FIRST + SHARED_AT_LEAST))
    rows = [
        TrainSequence(ids=[*prefix, *rest], mask=[False] * len(prefix) + [True] * len(rest))
        for rest in ([5, 3, 8, 2, 9, 4], [7, 6, 1, 5], [2, 9])
    ]
    device = next(model.parameters()).device
    results = []
    with torch.no_grad():
        for longest in (0, LONGEST):
            (batch,) = pack(rows, 1024, share_up_to=longest)
            results.append(masked_logprobs(model, batch.to(device)))
    apart, together = results
    tolerance = 1e-3 if next(model.parameters()).dtype == torch.float32 else 0.2
    return LONGEST if float((apart - together).abs().max()) < tolerance else 0
