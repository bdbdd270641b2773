"""Any other causal model of transformers over the same slots, by its own forward pass.

Slower than :mod:`rstar2cli.engines.decoder` (one pass per span instead of one per step), and
right wherever every layer attends to all earlier tokens.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from transformers.cache_utils import Cache, CacheLayerMixin

from rstar2cli.core.errors import EnvironmentMissing
from rstar2cli.engines.batch import Batch, Span
from rstar2cli.engines.decoder import CacheShape
from rstar2cli.engines.slots import SlotCache


class GenericDecoder:
    """The forward pass of ``model`` itself. Raises ``EnvironmentMissing`` for windowed or recurrent layers."""

    def __init__(self, model: Any) -> None:
        config = model.config.get_text_config()
        types = set(getattr(config, "layer_types", None) or ["full_attention"])
        if types != {"full_attention"}:
            raise EnvironmentMissing(
                f"the transformers engine can't run {config.model_type} models ({', '.join(sorted(types))} layers)",
                hint="use the vllm engine",
            )
        heads = config.num_attention_heads
        self.model = model.eval()
        known = inspect.signature(model.forward).parameters
        self._cache_argument = "cache" if "cache" in known else "past_key_values"  # renamed in transformers 5
        self.dtype: torch.dtype = next(model.parameters()).dtype
        self.device: torch.device = next(model.parameters()).device
        self.cache_shape = CacheShape(
            layers=config.num_hidden_layers,
            kv_heads=getattr(config, "num_key_value_heads", None) or heads,
            head_dim=getattr(config, "head_dim", None) or config.hidden_size // heads,
        )

    def parameters(self) -> dict[str, torch.Tensor]:
        """The model's own parameters; transformers names a tied tensor once."""
        return dict(self.model.named_parameters())

    def forward(self, batch: Batch, cache: SlotCache) -> torch.Tensor:
        """See :class:`rstar2cli.engines.decoder.Decoder`."""
        return torch.cat([self._span(batch, span, cache) for span in batch.spans])

    def _span(self, batch: Batch, span: Span, cache: SlotCache) -> torch.Tensor:
        ids = batch.ids[span.first : span.last].view(span.rows, -1)
        positions = batch.positions[span.first : span.last].view(span.rows, -1)
        seen = torch.arange(span.length, device=self.device) <= positions[..., None]
        mask = torch.zeros(seen.shape, dtype=self.dtype, device=self.device).masked_fill_(~seen, -torch.inf)
        slots = slice(span.slot, span.slot + span.rows)
        layers: list[Any] = [_SlotLayer(layer[slots], positions, span.length) for layer in cache.data]
        output = self.model(
            input_ids=ids,
            position_ids=positions,
            attention_mask=mask[:, None],
            use_cache=True,
            logits_to_keep=1,
            **{self._cache_argument: Cache(layers=layers)},
        )
        logits: torch.Tensor = output.logits[:, -1]
        return logits


class _SlotLayer(CacheLayerMixin):  # type: ignore[no-untyped-call]
    """One layer of the slots in the shape that transformers asks for."""

    def __init__(self, stored: torch.Tensor, positions: torch.Tensor, length: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._stored = stored
        self._positions = positions
        self._length = length
        self.is_initialized = True

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Nothing: the slots exist."""

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write the new keys and values; give back all up to the span's length, [rows, kv_heads, length, dim]."""
        rows = torch.arange(len(self._stored), device=self._stored.device)[:, None]
        kv_heads = key_states.shape[1]
        self._stored[rows, self._positions] = torch.cat([key_states, value_states], 1).transpose(1, 2)
        seen = self._stored[:, : self._length].transpose(1, 2)
        return seen[:, :kv_heads], seen[:, kv_heads:]

    def get_seq_length(self) -> int:
        """Tokens cached before this pass (the positions are given, so nothing depends on it)."""
        return self._length - self._positions.shape[1]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Keys to mask and their offset."""
        return self._length, 0

    def get_max_length(self) -> int:
        """No limit of its own."""
        return -1
