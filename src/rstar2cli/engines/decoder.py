"""A lean forward pass for Llama-like models (Llama, SmolLM, Mistral, Qwen2, Qwen3).

It runs on the checkpoint's weights with q/k/v and gate/up fused, over packed tokens, with
grouped-query attention on the slots themselves: keys and values are never repeated or
copied. At load it is compared with the model of transformers (:mod:`rstar2cli.engines.probe`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch
import torch.nn.functional as F

from rstar2cli.engines.batch import Batch, Span
from rstar2cli.engines.slots import SlotCache

LEAN_TYPES = ("llama", "mistral", "qwen2", "qwen3")


@dataclass(frozen=True, kw_only=True)
class CacheShape:
    """What the key-value cache must hold for a model."""

    layers: int
    kv_heads: int
    head_dim: int


class Decoder(Protocol):
    """A model over slots."""

    dtype: torch.dtype
    device: torch.device
    cache_shape: CacheShape

    def forward(self, batch: Batch, cache: SlotCache) -> torch.Tensor:
        """Compute the new tokens, write their keys and values; logits [rows, V] of each row's last token."""
        ...

    def parameters(self) -> dict[str, torch.Tensor]:
        """Every weight by its checkpoint name; writing into these tensors changes the model. A tied head is absent."""
        ...


@dataclass(kw_only=True)
class _Layer:
    input_norm: torch.Tensor
    qkv: torch.Tensor
    qkv_bias: torch.Tensor | None
    q_norm: torch.Tensor | None
    k_norm: torch.Tensor | None
    out: torch.Tensor
    out_bias: torch.Tensor | None
    post_norm: torch.Tensor
    gate_up: torch.Tensor
    down: torch.Tensor


def lean_supports(model: Any) -> bool:
    """Whether the layers of this transformers model are those that :class:`LeanDecoder` computes."""
    config = model.config
    types = getattr(config, "layer_types", None) or ["full_attention"]
    windowed = config.model_type == "mistral" and getattr(config, "sliding_window", None)
    rope = getattr(config, "rope_parameters", None) or {}
    return (
        config.model_type in LEAN_TYPES
        and set(types) == {"full_attention"}
        and not windowed
        and config.hidden_act == "silu"
        and not getattr(config, "mlp_bias", False)
        and rope.get("rope_type", "default") not in ("dynamic", "longrope")  # their tables depend on the length
    )


class LeanDecoder:
    """The forward pass; ``model`` is a transformers causal language model that :func:`lean_supports` accepts."""

    def __init__(self, model: Any, *, max_length: int) -> None:
        config = model.config
        weight = model.model.embed_tokens.weight
        self.dtype: torch.dtype = weight.dtype
        self.device: torch.device = weight.device
        heads = config.num_attention_heads
        head_dim = getattr(config, "head_dim", None) or config.hidden_size // heads
        self.cache_shape = CacheShape(
            layers=config.num_hidden_layers, kv_heads=config.num_key_value_heads, head_dim=head_dim
        )
        self._heads = heads
        self._epsilon = float(config.rms_norm_eps)
        self._named: dict[str, torch.Tensor] = {}
        self._embedding = self._keep("model.embed_tokens.weight", weight)
        self._norm = self._keep("model.norm.weight", model.model.norm.weight)
        tied = bool(config.tie_word_embeddings)
        self._head = self._embedding if tied else self._keep("lm_head.weight", model.lm_head.weight)
        self._layers = [self._layer(index, layer) for index, layer in enumerate(model.model.layers)]
        positions = torch.arange(max_length, device=self.device)[None]
        cos, sin = model.model.rotary_emb(weight[:1, None], positions)
        self._cos = cos[0][:, None].to(self.dtype)  # [max_length, 1, head_dim]
        # rotate_half negates the first half of what it moves: folding the sign into sin saves a copy a layer.
        sign = torch.ones(head_dim, device=self.device, dtype=self.dtype)
        sign[: head_dim // 2] = -1
        self._sin = sin[0][:, None].to(self.dtype) * sign

    def parameters(self) -> dict[str, torch.Tensor]:
        """Views into the fused weights, by checkpoint name."""
        return self._named

    def forward(self, batch: Batch, cache: SlotCache) -> torch.Tensor:
        """See :class:`Decoder`."""
        heads, kv_heads = self._heads, self.cache_shape.kv_heads
        head_dim = self.cache_shape.head_dim
        both = heads + kv_heads
        cos, sin = self._cos[batch.positions], self._sin[batch.positions]
        x = F.embedding(batch.ids, self._embedding)
        tokens = x.shape[0]
        for index, layer in enumerate(self._layers):
            h = self._rms(x, layer.input_norm)
            qkv = F.linear(h, layer.qkv, layer.qkv_bias).view(tokens, both + kv_heads, head_dim)
            qk = qkv[:, :both]
            if layer.q_norm is not None and layer.k_norm is not None:
                qk = torch.cat(
                    [self._rms(qkv[:, :heads], layer.q_norm), self._rms(qkv[:, heads:both], layer.k_norm)], 1
                )
            qk = qk * cos + qk.roll(head_dim // 2, dims=-1) * sin
            keys_values = cache.data[index]
            keys_values[batch.slots, batch.positions] = torch.cat([qk[:, heads:], qkv[:, both:]], 1)
            mixed = torch.empty(tokens, heads, head_dim, dtype=x.dtype, device=x.device)
            for span in batch.spans:
                _attend(qk[span.first : span.last, :heads], keys_values, span, mixed[span.first : span.last])
            x = x + F.linear(mixed.view(tokens, heads * head_dim), layer.out, layer.out_bias)
            gate, up = F.linear(self._rms(x, layer.post_norm), layer.gate_up).chunk(2, dim=-1)
            x = x + F.linear(F.silu(gate) * up, layer.down)
        if batch.last is not None:
            x = x[batch.last]
        return F.linear(self._rms(x, self._norm), self._head)

    def _rms(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self._epsilon)
        return weight * wide.to(x.dtype)

    def _keep(self, name: str, weight: torch.Tensor) -> torch.Tensor:
        self._named[name] = weight.detach().clone()
        return self._named[name]

    def _fuse(self, prefix: str, modules: Any, names: tuple[str, ...], part: str) -> torch.Tensor | None:
        """One tensor of several modules' weights (or biases), each reachable by its own name."""
        parts = [getattr(getattr(modules, name), part) for name in names]
        if parts[0] is None:
            return None
        fused = torch.cat([p.detach() for p in parts])
        sizes = [p.shape[0] for p in parts]
        for name, view in zip(names, torch.split(fused, sizes), strict=True):
            self._named[f"{prefix}.{name}.{part}"] = view
        return fused

    def _layer(self, index: int, layer: Any) -> _Layer:
        prefix = f"model.layers.{index}"
        attention, mlp = layer.self_attn, layer.mlp
        qkv = self._fuse(f"{prefix}.self_attn", attention, ("q_proj", "k_proj", "v_proj"), "weight")
        gate_up = self._fuse(f"{prefix}.mlp", mlp, ("gate_proj", "up_proj"), "weight")
        assert qkv is not None and gate_up is not None  # weights, unlike biases, always exist
        normed = hasattr(attention, "q_norm")
        out_bias = attention.o_proj.bias
        return _Layer(
            input_norm=self._keep(f"{prefix}.input_layernorm.weight", layer.input_layernorm.weight),
            qkv=qkv,
            qkv_bias=self._fuse(f"{prefix}.self_attn", attention, ("q_proj", "k_proj", "v_proj"), "bias"),
            q_norm=self._keep(f"{prefix}.self_attn.q_norm.weight", attention.q_norm.weight) if normed else None,
            k_norm=self._keep(f"{prefix}.self_attn.k_norm.weight", attention.k_norm.weight) if normed else None,
            out=self._keep(f"{prefix}.self_attn.o_proj.weight", attention.o_proj.weight),
            out_bias=None if out_bias is None else self._keep(f"{prefix}.self_attn.o_proj.bias", out_bias),
            post_norm=self._keep(f"{prefix}.post_attention_layernorm.weight", layer.post_attention_layernorm.weight),
            gate_up=gate_up,
            down=self._keep(f"{prefix}.mlp.down_proj.weight", mlp.down_proj.weight),
        )


def _attend(query: torch.Tensor, keys_values: torch.Tensor, span: Span, out: torch.Tensor) -> None:
    """Attention of one span: ``query`` [tokens, heads, head_dim] over its slots, into ``out`` of the same shape."""
    tokens, heads, head_dim = query.shape
    stored = keys_values[span.slot : span.slot + span.rows, : span.length].transpose(1, 2)
    kv_heads = stored.shape[1] // 2
    keys, values = stored[:, :kv_heads], stored[:, kv_heads:]
    if span.rows == tokens:  # one token a row: the heads that share keys become the query positions
        folded = query.reshape(tokens, kv_heads, heads // kv_heads, head_dim)
        mixed = F.scaled_dot_product_attention(folded, keys, values, attn_mask=span.mask)
        out.copy_(mixed.reshape(tokens, heads, head_dim))
        return
    mixed = F.scaled_dot_product_attention(
        query.transpose(0, 1)[None], keys, values, attn_mask=span.mask, is_causal=span.causal, enable_gqa=True
    )
    out.copy_(mixed[0].transpose(0, 1))
