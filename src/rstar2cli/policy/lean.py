"""Leaner layers for training on CPUs: RMSNorm and gated MLP that keep less and touch memory less often.

transformers' layers keep float32 copies and every intermediate for the backward pass. These
keep the inputs alone, recompute the rest a cache-sized piece at a time, and compute the same
formulas. A layer is replaced only if a probe shows that it is one of those known here.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

_ROWS = 256
"""Rows worked on at a time: their float32 copies stay in the cache."""
_PROBE_ROWS = 8


def make_lean(model: Any) -> int:
    """Replace the forward pass of the layers that can be; how many were."""
    replaced = 0
    for module in model.modules():
        lean = _lean_norm(module) or _lean_mlp(module)
        if lean is not None and _agrees(module, lean):
            module.forward = lean
            replaced += 1
    return replaced


def _lean_norm(module: Any) -> Any:
    if not (type(module).__name__.endswith("RMSNorm") and hasattr(module, "variance_epsilon")):
        return None
    return lambda hidden_states: _Norm.apply(hidden_states, module.weight, module.variance_epsilon)  # type: ignore[no-untyped-call]


def _lean_mlp(module: Any) -> Any:
    parts = [getattr(module, name, None) for name in ("gate_proj", "up_proj", "down_proj")]
    if not all(type(part) is torch.nn.Linear and part.bias is None for part in parts):
        return None
    gate, up, down = parts
    return lambda x: _GatedMlp.apply(x, gate.weight, up.weight, down.weight)  # type: ignore[no-untyped-call, union-attr]


def _agrees(module: Any, lean: Any) -> bool:
    """Whether both give the same on random rows, up to rounding."""
    weight = next(module.parameters())
    width = weight.shape[-1]
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(_PROBE_ROWS, width, generator=generator).to(weight.device, weight.dtype)
    tolerance = 1e-5 if weight.dtype == torch.float32 else 2e-2
    with torch.no_grad():
        expected, got = module(rows[None]), lean(rows[None])
    return torch.allclose(got, expected, rtol=tolerance, atol=tolerance * float(expected.abs().max()))


class _Norm(torch.autograd.Function):
    """(…, H), (H,) → (…, H): x / rms(x) · weight, the root mean square taken in float32."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
        flat = x.reshape(-1, x.shape[-1])
        out = torch.empty_like(flat)
        scales = torch.empty(flat.shape[0], 1, dtype=torch.float32, device=x.device)
        for start in range(0, flat.shape[0], _ROWS):
            part = slice(start, start + _ROWS)
            rows = flat[part].to(torch.float32, copy=True)
            norm = torch.linalg.vector_norm(rows, dim=-1, keepdim=True)
            scales[part] = norm.square_().div_(rows.shape[-1]).add_(epsilon).rsqrt_()
            torch.mul(rows.mul_(scales[part]).to(x.dtype), weight, out=out[part])
        ctx.save_for_backward(x, weight, scales)
        return out.view(x.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        x, weight, scales = ctx.saved_tensors
        flat, grads = x.reshape(-1, x.shape[-1]), grad.reshape(-1, x.shape[-1])
        grad_x = torch.empty_like(flat)
        grad_weight = torch.zeros_like(weight, dtype=torch.float32)
        wide_weight = weight.float()
        for start in range(0, flat.shape[0], _ROWS):
            part = slice(start, start + _ROWS)
            normed = flat[part].to(torch.float32, copy=True).mul_(scales[part])
            rows = grads[part].to(torch.float32, copy=True)
            grad_weight += (rows * normed).sum(0)
            rows.mul_(wide_weight)
            along = (rows * normed).mean(-1, keepdim=True)
            grad_x[part] = rows.sub_(normed.mul_(along)).mul_(scales[part])
        return grad_x.view(x.shape), grad_weight.to(weight.dtype), None


class _GatedMlp(torch.autograd.Function):
    """(…, H) and weights (I, H), (I, H), (H, I) → (…, H): down(silu(gate(x)) · up(x)); keeps x, gate(x) and up(x)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, gate_weight: Tensor, up_weight: Tensor, down_weight: Tensor) -> Tensor:
        flat = x.reshape(-1, x.shape[-1])
        gate, up = F.linear(flat, gate_weight), F.linear(flat, up_weight)
        ctx.save_for_backward(x, gate, up, gate_weight, up_weight, down_weight)
        return F.linear(F.silu(gate).mul_(up), down_weight).view(x.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        x, gate, up, gate_weight, up_weight, down_weight = ctx.saved_tensors
        flat, grads = x.reshape(-1, x.shape[-1]), grad.reshape(-1, x.shape[-1])
        inner, grad_gate = torch.empty_like(gate), grads @ down_weight
        grad_up = torch.empty_like(up)
        for start in range(0, flat.shape[0], _ROWS):
            part = slice(start, start + _ROWS)
            active = F.silu(gate[part])
            torch.mul(active, up[part], out=inner[part])
            torch.mul(grad_gate[part], active, out=grad_up[part])
            grad_gate[part] = torch.ops.aten.silu_backward(grad_gate[part].mul_(up[part]), gate[part])
        grad_x = torch.addmm(grad_gate @ gate_weight, grad_up, up_weight)
        return grad_x.view(x.shape), grad_gate.T @ flat, grad_up.T @ flat, grads.T @ inner
