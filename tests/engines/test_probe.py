"""The check at load: rounding passes, a wrong layer does not."""

from __future__ import annotations

import pytest
import torch

from rstar2cli.engines.decoder import LeanDecoder
from rstar2cli.engines.probe import TOLERANCE, difference
from rstar2cli.engines.transformers_engine import EngineConfig, TransformersEngine
from rstar2cli.policy.load import load_model
from rstar2cli.policy.tiny import init_tiny


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    path = tmp_path_factory.mktemp("probe") / "tiny"
    init_tiny(path, seed=0)
    return path


def sharpened(path, factor):
    """A model as sure of itself as after training: its logits are that many times as large."""
    model = load_model(path, dtype="bfloat16").eval()
    with torch.no_grad():
        model.base_model.norm.weight.mul_(factor)
    return model


@torch.inference_mode()
def test_a_sharp_bfloat16_model_keeps_the_lean_pass(tiny):
    model = sharpened(tiny, 30)
    assert difference(LeanDecoder(model, max_length=256), model) < TOLERANCE[torch.bfloat16]
    engine = TransformersEngine(model, EngineConfig(max_length=256, max_running=2), "v")
    try:
        assert engine.lean
    finally:
        engine.close()


@torch.inference_mode()
def test_a_wrong_layer_is_seen(tiny):
    model = sharpened(tiny, 30)
    lean = LeanDecoder(model, max_length=256)
    other = sharpened(tiny, 30)
    other.base_model.layers[0].self_attn.o_proj.weight.zero_()
    assert difference(lean, other) > TOLERANCE[torch.bfloat16]
