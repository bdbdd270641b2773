"""The check at load: does the lean forward pass say what the model of transformers says?"""

from __future__ import annotations

from typing import Any

import torch

from rstar2cli.engines.batch import RowInput, make_batch
from rstar2cli.engines.decoder import Decoder
from rstar2cli.engines.slots import SlotCache

TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 0.2, torch.float16: 0.05}
"""Largest relative error of the logits allowed on the probe, by the type of the weights."""
_LENGTH = 24


def difference(decoder: Decoder, model: Any) -> float:
    """‖Δ‖ / ‖logits‖ over the vocabulary, both centred, after a prompt computed in two pieces and one decoded token.

    Relative, because in bfloat16 rounding grows with the logits: a sharply trained model is off by half a nat
    and more on unlikely tokens without anything being wrong.
    """
    vocab = model.config.get_text_config().vocab_size
    ids = torch.randint(0, vocab, (1, _LENGTH), generator=torch.Generator().manual_seed(7))
    shape = decoder.cache_shape
    cache = SlotCache(
        layers=shape.layers,
        slots=1,
        kv_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        dtype=decoder.dtype,
        device=decoder.device,
    )
    cache.reserve(1, _LENGTH)
    tokens = ids[0].tolist()
    for start, end in ((0, _LENGTH // 2), (_LENGTH // 2, _LENGTH - 1), (_LENGTH - 1, _LENGTH)):
        row = RowInput(slot=0, start=start, ids=tokens[start:end])
        logits = decoder.forward(make_batch([row], dtype=decoder.dtype, device=decoder.device), cache)
    expected = model(input_ids=ids.to(decoder.device), use_cache=False).logits[0, -1]
    ours, theirs = logits[0].float(), expected.float()
    ours, theirs = ours - ours.mean(), theirs - theirs.mean()
    return float((ours - theirs).norm() / theirs.norm())
