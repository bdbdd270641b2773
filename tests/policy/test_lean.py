"""Lean layers and folded attention against those of transformers and torch, alone."""

from __future__ import annotations

import pytest
import torch
from transformers.models.gemma.modeling_gemma import GemmaRMSNorm
from transformers.models.llama.modeling_llama import LlamaRMSNorm

from rstar2cli.policy.attention import bmm_attention
from rstar2cli.policy.lean import _GatedMlp, _Norm, make_lean


def gradients(function, inputs, seed=1):
    """Result and gradients of all inputs for a random upstream gradient."""
    leaves = [value.clone().requires_grad_() for value in inputs]
    out = function(*leaves)
    out.backward(torch.randn(out.shape, generator=torch.Generator().manual_seed(seed)).to(out.dtype))
    return [out.detach(), *(leaf.grad for leaf in leaves)]


def close(a: list[torch.Tensor], b: list[torch.Tensor], tolerance: float) -> None:
    for x, y in zip(a, b, strict=True):
        assert (x - y).float().norm() <= tolerance * y.float().norm()


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 1e-2)])
def test_norm(dtype, tolerance):
    torch.manual_seed(0)
    x, weight = torch.randn(3, 300, 48).to(dtype), torch.randn(48).to(dtype)

    def plain(x, weight):
        wide = x.float()
        return weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype)

    close(gradients(lambda x, w: _Norm.apply(x, w, 1e-5), [x, weight]), gradients(plain, [x, weight]), tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)])
def test_gated_mlp(dtype, tolerance):
    torch.manual_seed(0)
    inputs = [torch.randn(shape).to(dtype) for shape in ((3, 300, 16), (40, 16), (40, 16), (16, 40))]

    def plain(x, gate, up, down):
        return (torch.nn.functional.silu(x @ gate.T) * (x @ up.T)) @ down.T

    close(gradients(_GatedMlp.apply, inputs), gradients(plain, inputs), tolerance)


@pytest.mark.parametrize(("heads", "kv_heads"), [(9, 3), (4, 4), (6, 1)])
def test_folded_attention(heads, kv_heads):
    torch.manual_seed(0)
    inputs = [torch.randn(2, h, 37, 8) for h in (heads, kv_heads, kv_heads)]

    def folded(query, key, value):
        return bmm_attention(torch.nn.Module(), query, key, value, None)[0]

    def plain(query, key, value):
        out = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
        return out.transpose(1, 2)

    close(gradients(folded, inputs), gradients(plain, inputs), 1e-5)


def test_layers_of_another_formula_are_left_alone():
    """Gemma's norm multiplies by 1 + weight; here it even carries the attribute that the known ones have."""
    gemma = GemmaRMSNorm(16)
    gemma.variance_epsilon = 1e-6
    assert make_lean(torch.nn.Sequential(gemma)) == 0
    assert make_lean(torch.nn.Sequential(LlamaRMSNorm(16))) == 1


def test_an_mlp_of_another_activation_is_left_alone():
    class Mlp(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.gate_proj, self.up_proj = torch.nn.Linear(8, 16, bias=False), torch.nn.Linear(8, 16, bias=False)
            self.down_proj = torch.nn.Linear(16, 8, bias=False)

        def forward(self, x):
            return self.down_proj(torch.nn.functional.gelu(self.gate_proj(x)) * self.up_proj(x))

    assert make_lean(torch.nn.Sequential(Mlp())) == 0
