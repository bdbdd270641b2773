"""Causal grouped-query attention as batched matrix products, for training on CPUs.

The query heads that share a key head are folded into the rows of one product, so keys and
values are never repeated, and the probabilities are recomputed in the backward pass instead
of kept. Rows must be padded on the right: causality then hides the padding from every real
token, and no padding mask is needed.

Rows that begin alike can be given as one: the shared prefix once, then the rest of each row.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

NAME = "rstar2_bmm"
"""Name under which transformers knows it."""

PREFIX = "shared_prefix"
ROWS = "prefix_rows"
"""Names of the arguments that tell it of a shared prefix: its length, and how many rows follow it."""

LONGEST = 1024
"""Beyond this length the square of probabilities costs more memory than SDPA costs time."""


def bmm_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float | None = None,
    dropout: float = 0.0,
    shared_prefix: int = 0,
    prefix_rows: int = 0,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Attention in the form transformers calls.

    ``query`` (B, H, L, D), ``key`` and ``value`` (B, K, L, D) → (B, L, H, D). What it does not
    cover (a mask, dropout, a cache, long rows) goes to SDPA. With ``shared_prefix`` P and
    ``prefix_rows`` R the one row holds P tokens that R rows begin with, then the rest of each: L = P + R·S.
    """
    length = query.shape[2]
    if shared_prefix:
        scale = query.shape[-1] ** -0.5 if scaling is None else scaling
        return _behind_prefix(query, key, value, scale, shared_prefix, prefix_rows).transpose(1, 2), None
    if attention_mask is not None or dropout or key.shape[2] != length or length > LONGEST:
        out, _ = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **kwargs
        )
        return out, None
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    mixed: Tensor = _FoldedAttention.apply(query, key, value, scale)  # type: ignore[no-untyped-call]
    return mixed.transpose(1, 2), None


def _behind_prefix(query: Tensor, key: Tensor, value: Tensor, scale: float, prefix: int, rows: int) -> Tensor:
    """(1, H, P + R·S, D): the prefix attends to itself, each row's rest to the prefix and to itself."""
    heads, dim = query.shape[1], query.shape[3]
    own = _FoldedAttention.apply(query[:, :, :prefix], key[:, :, :prefix], value[:, :, :prefix], scale)  # type: ignore[no-untyped-call]

    def split(states: Tensor) -> Tensor:  # (1, h, P + R·S, D) → (R, h, S, D)
        heads, _, dim = states[0].shape
        return states[0, :, prefix:].reshape(heads, rows, -1, dim).transpose(0, 1)

    def whole(states: Tensor) -> Tensor:  # → (R, h, P + S, D)
        return torch.cat([states[:, :, :prefix].expand(rows, -1, -1, -1), split(states)], dim=2)

    rest = _FoldedAttention.apply(split(query), whole(key), whole(value), scale)  # type: ignore[no-untyped-call]
    return torch.cat([own, rest.transpose(0, 1).reshape(1, heads, -1, dim)], dim=2)


class _FoldedAttention(torch.autograd.Function):
    """(B, H, S, D) × (B, K, L, D) × (B, K, L, D) → (B, H, S, D), causal; H a multiple of K.

    The S queries are those of the last S of the L places.
    """

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        ctx.scale = scale
        ctx.save_for_backward(query, key, value)
        folded, keys, values = _fold(query, key.shape[1]), _rows(key), _rows(value)
        return torch.bmm(_probabilities(folded, keys, scale, query.shape[2]), values).view(query.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        query, key, value = ctx.saved_tensors
        kv_heads = key.shape[1]
        folded, keys, values, grads = _fold(query, kv_heads), _rows(key), _rows(value), _fold(grad, kv_heads)
        p = _probabilities(folded, keys, ctx.scale, query.shape[2])
        grad_value = torch.bmm(p.transpose(1, 2), grads)
        grad_p = torch.bmm(grads, values.transpose(1, 2))
        grad_scores = torch._softmax_backward_data(grad_p, p, -1, p.dtype).mul_(ctx.scale)
        grad_query = torch.bmm(grad_scores, keys)
        grad_key = torch.bmm(grad_scores.transpose(1, 2), folded)
        return grad_query.view(query.shape), grad_key.view(key.shape), grad_value.view(value.shape), None


def _probabilities(folded: Tensor, keys: Tensor, scale: float, queries: int) -> Tensor:
    """(B·K, G·S, L): softmax of the scaled scores over the keys that are not in the future."""
    scores = torch.bmm(folded, keys.transpose(1, 2)).mul_(scale)
    length = scores.shape[2]
    scores.view(scores.shape[0], -1, queries, length).add_(_future(queries, length, scores.dtype, scores.device))
    return torch.softmax(scores, dim=-1)


@functools.lru_cache(maxsize=4)
def _future(queries: int, length: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """(S, L): −∞ on keys that are in a query's future, else 0. All layers of a micro-batch share it."""
    full = torch.full((queries, length), float("-inf"), dtype=dtype, device=device)
    return full.triu_(1 + length - queries)


def _fold(heads: Tensor, kv_heads: int) -> Tensor:
    """(B, H, L, D) → (B·K, (H/K)·L, D)."""
    batch, _, _, dim = heads.shape
    return heads.reshape(batch * kv_heads, -1, dim)


def _rows(heads: Tensor) -> Tensor:
    """(B, K, L, D) → (B·K, L, D)."""
    return heads.reshape(-1, *heads.shape[2:])


AttentionInterface.register(NAME, bmm_attention)
