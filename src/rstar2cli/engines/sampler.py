"""Drawing tokens: one uniform number per row, inverse CDF, log-probs of what was drawn from.

Each request draws from its own Philox stream keyed by its seed, one number a token, so
its tokens do not depend on what is decoded beside it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from rstar2cli.engines.base import Sampling

_BLOCK = 256


def uniforms(seed: int) -> np.random.Generator:
    """The stream of one request: its i-th ``random()`` decides its i-th token."""
    return np.random.Generator(np.random.Philox(key=seed))


def draw(
    logits: torch.Tensor, uniform: torch.Tensor, sampling: Sequence[Sampling]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw one token a row from the processed distribution.

    ``logits`` [n, V] of any type, ``uniform`` [n] float64 in [0, 1), one ``sampling`` a row.
    Returns token ids [n] (int64) and their float32 log-probs [n] under the distribution after
    temperature, then top-k, then top-p (the order of vLLM). A greedy row (temperature 0) takes
    the likeliest token; its log-prob is that at temperature 1, as in vLLM.
    """
    scores = logits.float()
    temperatures = [s.temperature or 1.0 for s in sampling]
    if any(t != 1.0 for t in temperatures):
        scores = scores / torch.tensor(temperatures, device=scores.device)[:, None]
    elif scores is logits:
        scores = scores.clone()
    peak, likeliest = scores.max(dim=-1)
    scores.sub_(peak[:, None])
    limited = [row for row, s in enumerate(sampling) if s.temperature > 0 and (s.top_k > 0 or s.top_p < 1.0)]
    if limited:
        rows = torch.tensor(limited, device=scores.device)
        scores[rows] = _limit(scores[rows], [sampling[row] for row in limited])
    weights = _padded(scores.exp())
    sums = weights.sum(dim=-1).double()
    tokens = _inverse_cdf(weights, sums, uniform.to(scores.device))
    greedy = torch.tensor([s.temperature == 0 for s in sampling], device=scores.device)
    tokens = torch.where(greedy, likeliest, tokens)
    chosen = scores.gather(1, tokens[:, None])[:, 0]
    return tokens, chosen - sums.sum(dim=-1).log().float()


def _padded(weights: torch.Tensor) -> torch.Tensor:
    """[n, V] → [n, blocks, 256], zeros at the end."""
    rows, vocab = weights.shape
    missing = -vocab % _BLOCK
    if missing:
        weights = torch.nn.functional.pad(weights, (0, missing))
    return weights.view(rows, -1, _BLOCK)


def _inverse_cdf(weights: torch.Tensor, sums: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """Index of the token where the cumulative weight passes ``uniform`` × total, in two levels."""
    bounds = sums.cumsum(dim=-1)
    total = bounds[:, -1:]
    target = torch.minimum(uniform[:, None] * total, torch.nextafter(total, torch.zeros_like(total)))
    block = torch.searchsorted(bounds, target, right=True)
    inside = weights.gather(1, block[:, :, None].expand(-1, -1, _BLOCK))[:, 0].double().cumsum(dim=-1)
    rest = target - (bounds - sums).gather(1, block)
    place = torch.searchsorted(inside, rest, right=True)
    # The block's sum was rounded otherwise than its cumulative sum: stay on the last token with any weight.
    last = (inside < inside[:, -1:]).sum(dim=-1, keepdim=True)
    return (block * _BLOCK + torch.minimum(place, last))[:, 0]


def _limit(scores: torch.Tensor, sampling: Sequence[Sampling]) -> torch.Tensor:
    """``scores`` [n, V] with -inf outside top-k, then outside the nucleus of what is left."""
    ordered, order = scores.sort(dim=-1, descending=True, stable=True)
    vocab = scores.shape[-1]
    top_k = torch.tensor([s.top_k or vocab for s in sampling], device=scores.device)
    top_p = torch.tensor([s.top_p for s in sampling], device=scores.device, dtype=torch.float64)
    ranks = torch.arange(vocab, device=scores.device)
    ordered = ordered.masked_fill(ranks >= top_k[:, None], -torch.inf)
    probabilities = ordered.double().softmax(dim=-1)
    before = probabilities.cumsum(dim=-1) - probabilities
    ordered = ordered.masked_fill((before >= top_p[:, None]) & (ranks > 0), -torch.inf)
    return torch.empty_like(scores).scatter_(1, order, ordered)
