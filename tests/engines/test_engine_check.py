"""What a dry run says of an engine."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from rstar2cli.core.errors import EnvironmentMissing
from rstar2cli.engines.check import check_engine
from rstar2cli.engines.config import EngineConfig
from rstar2cli.policy.describe import describe_model
from rstar2cli.policy.tiny import init_tiny

CPU = EngineConfig(device="cpu", dtype="float32", max_running=8)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path: Path = tmp_path_factory.mktemp("check") / "tiny"
    init_tiny(path, hidden=64, heads=4, kv_heads=2, head_dim=16)
    return describe_model(str(path))


def test_the_cache_is_that_of_the_rows_that_run_at_once(model: dict[str, Any]) -> None:
    """2 layers × keys and values × 2 heads × 16 × 4 bytes = 512 bytes a token; 8 rows of 2^18 tokens are 1 GiB."""
    assert model["layers"] == 2
    said = check_engine(CPU, model, longest=2**18, rows=100)
    assert said["engine"] == "transformers on cpu, float32, 8 at once"
    assert said["memory"].endswith("at most 1.00 GiB of keys and values")
    assert check_engine(CPU, model, longest=2**18, rows=2)["memory"].endswith("at most 0.25 GiB of keys and values")


def test_what_is_not_there_is_told(model: dict[str, Any]) -> None:
    with pytest.raises(EnvironmentMissing, match="accelerators"):
        check_engine(EngineConfig(device="cuda:77"), model, longest=10, rows=1)
    with pytest.raises(EnvironmentMissing, match="not a vLLM server"):
        check_engine(EngineConfig(name="http", endpoints=("http://127.0.0.1:9",)), model, longest=10, rows=1)
    with pytest.raises(EnvironmentMissing, match="no deterministic mode"):
        check_engine(EngineConfig(name="vllm"), model, longest=10, rows=1, deterministic=True)


@pytest.mark.skipif(importlib.util.find_spec("vllm") is not None, reason="vLLM is installed here")
def test_a_missing_vllm_is_told(model: dict[str, Any]) -> None:
    with pytest.raises(EnvironmentMissing, match="not installed"):
        check_engine(EngineConfig(name="vllm"), model, longest=10, rows=1)
