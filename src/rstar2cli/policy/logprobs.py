"""Log-probs of the tokens that count: the one function that SFT, RL and the mismatch metrics use.

The head touches counted positions only, a chunk at a time; full logits never exist. Values
and gradients equal those of full logits (tested in float32 to 1e-4).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from rstar2cli.core.errors import EnvironmentMissing
from rstar2cli.policy.attention import PREFIX, ROWS
from rstar2cli.policy.packing import MicroBatch

CHUNK = 512
"""Counted positions per chunk of the head."""

_SPECIAL_HEADS = ("final_logit_softcapping", "logit_scale", "logits_scaling")


def masked_logprobs(model: Any, batch: MicroBatch, *, temperature: float = 1.0, chunk: int = CHUNK) -> Tensor:
    """(T,) float32 log-probs of the counted tokens under softmax(logits / temperature).

    Differentiable in the model's weights; under ``torch.no_grad`` nothing is kept. ``batch`` must be on
    the model's device.
    """
    layout: dict[str, Any] = {}
    if batch.prefix:
        layout = {"position_ids": batch.positions, PREFIX: batch.prefix, ROWS: len(batch.rows)}
    hidden = model.base_model(input_ids=batch.ids, use_cache=False, **layout).last_hidden_state
    picked = hidden.flatten(0, 1)[batch.places]
    head = model.get_output_embeddings().weight
    result: Tensor = _ChunkedHead.apply(picked, head, batch.targets, temperature, chunk)  # type: ignore[no-untyped-call]
    return result


def check_head(model: Any) -> None:
    """Raise ``EnvironmentMissing`` if the model's logits are more than a product with the head's weights."""
    head = model.get_output_embeddings()
    special = [name for name in _SPECIAL_HEADS if getattr(model.config, name, None) not in (None, 1, 1.0)]
    if special or getattr(head, "bias", None) is not None:
        what = ", ".join(special) or "a bias"
        raise EnvironmentMissing(
            f"{type(model).__name__}: its head has {what}, which training does not support",
            hint="use a Llama-like model (Llama, SmolLM2, Mistral, Qwen2, Qwen3)",
        )


class _ChunkedHead(torch.autograd.Function):
    """(T, H) hidden, (V, H) head, (T,) targets → (T,) log-probs; logits are made again in the backward pass."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, head: Tensor, targets: Tensor, temperature: float, chunk: int) -> Tensor:
        result = hidden.new_empty(hidden.shape[0], dtype=torch.float32)
        for start in range(0, hidden.shape[0], chunk):
            part = slice(start, start + chunk)
            logp = torch.log_softmax((hidden[part] @ head.T).float().div_(temperature), dim=-1)
            result[part] = logp.gather(1, targets[part, None])[:, 0]
        ctx.temperature, ctx.chunk = temperature, chunk
        ctx.save_for_backward(hidden, head, targets, result)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        hidden, head, targets, logp = ctx.saved_tensors
        grad_hidden = torch.empty_like(hidden)
        grad_head = torch.zeros(head.shape, dtype=torch.float32, device=head.device)
        scale = grad.float() / ctx.temperature
        for start in range(0, hidden.shape[0], ctx.chunk):
            part = slice(start, start + ctx.chunk)
            logits = (hidden[part] @ head.T).div_(ctx.temperature)
            grad_logits = torch.softmax(logits, dim=-1).mul_(-scale[part, None].to(head.dtype))
            # 1 − p of the target from its float32 log-prob: rounding p to bfloat16 first would lose it near 1
            target_grad = (-torch.expm1(logp[part]) * scale[part]).to(head.dtype)
            grad_logits.scatter_(1, targets[part, None], target_grad[:, None])
            grad_hidden[part] = grad_logits @ head
            grad_head += grad_logits.T @ hidden[part]
        return grad_hidden, grad_head.to(head.dtype), None, None, None
