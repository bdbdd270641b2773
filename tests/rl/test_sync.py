"""New weights reach the engine, and an engine that kept a part of the old ones is found out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
import torch

from rstar2cli.core.errors import EnvironmentMissing
from rstar2cli.engines.build import build_engine
from rstar2cli.engines.config import EngineConfig
from rstar2cli.engines.transformers_engine import TransformersEngine
from rstar2cli.policy.load import Policy, load_policy
from rstar2cli.policy.tiny import init_tiny
from rstar2cli.rl.sync import check_probe, sync_weights

PROBE = list(range(40, 60))
CONFIG = EngineConfig(device="cpu", dtype="float32", max_running=2, max_length=128)


@pytest.fixture(params=[True, False], ids=["tied", "untied"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    init_tiny(tmp_path / "model", hidden=32, heads=2, kv_heads=1, head_dim=16, tied=request.param)
    return str(tmp_path / "model")


def changed(model: str) -> Policy:
    policy = load_policy(model, device="cpu", dtype="float32")
    with torch.no_grad():
        for weight in policy.model.parameters():
            weight += 0.05 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1))
    return policy


def test_weights_arrive(model: str) -> None:
    engine = build_engine(CONFIG, model, version="v0")
    try:
        policy = changed(model)
        with pytest.raises(EnvironmentMissing, match="differ"):
            check_probe(policy.model, engine, "v0", PROBE, tolerance=2e-3)
        assert sync_weights(policy.model, engine, "v1", PROBE, tolerance=2e-3) < 1e-4
        assert engine.version == "v1"
        with pytest.raises(EnvironmentMissing, match="writes as 'v1'"):
            check_probe(policy.model, engine, "v2", PROBE, tolerance=2e-3)
    finally:
        engine.close()


class _Forgetful(TransformersEngine):
    """Takes the new version but keeps the old weights of the last norm: a part that stays behind."""

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]], version: str) -> None:
        old = {name: tensor.clone() for name, tensor in self._decoder.parameters().items()}

        def mixed() -> Iterator[tuple[str, torch.Tensor]]:
            for name, tensor in weights:
                yield name, old[name] if name == "model.norm.weight" else tensor

        super().load_weights(mixed(), version)


def test_a_part_that_stayed_behind_is_found(model: str) -> None:
    base = load_policy(model, device="cpu", dtype="float32")
    engine = _Forgetful(base.model, CONFIG, "v0")
    policy = changed(model)
    with torch.no_grad():
        policy.model.model.norm.weight += 0.5
    try:
        with pytest.raises(EnvironmentMissing, match="differ") as refused:
            sync_weights(policy.model, engine, "v1", PROBE, tolerance=2e-3)
        assert "tied" in (refused.value.hint or "")
    finally:
        engine.close()
