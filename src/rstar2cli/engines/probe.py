"""The check at load: does the lean forward pass say what the model of transformers says?"""

from __future__ import annotations

from typing import Any

import torch

from rstar2cli.engines.batch import RowInput, make_batch
from rstar2cli.engines.decoder import Decoder
from rstar2cli.engines.slots import SlotCache

TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 0.6, torch.float16: 0.05}
"""Largest expected |Δ log p| allowed on the probe, by the type of the weights."""
_LENGTH = 24


def difference(decoder: Decoder, model: Any) -> float:
    """E|Δ log p| under the model's own distribution, after a prompt computed in two pieces and one decoded token.

    The expectation, not the largest: in bfloat16 rounding alone moves unlikely tokens by half a nat and
    more in a sharply trained model, while a wrong layer moves the likely ones.
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
    tokens = ids[0].tolist()
    for start, end in ((0, _LENGTH // 2), (_LENGTH // 2, _LENGTH - 1), (_LENGTH - 1, _LENGTH)):
        row = RowInput(slot=0, start=start, ids=tokens[start:end])
        logits = decoder.forward(make_batch([row], dtype=decoder.dtype, device=decoder.device), cache)
    expected = model(input_ids=ids.to(decoder.device), use_cache=False).logits[0, -1]
    ours, theirs = logits[0].float().log_softmax(-1), expected.float().log_softmax(-1)
    return float((theirs.exp() * (ours - theirs).abs()).sum())
