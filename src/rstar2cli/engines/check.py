"""What an engine would need, found out without loading a model: for ``--dry-run``."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

from rstar2cli.core.errors import EnvironmentMissing
from rstar2cli.core.process import memory_limit
from rstar2cli.engines.config import EngineConfig

_GIB = 2**30


def check_engine(
    config: EngineConfig, model: dict[str, Any], *, longest: int, rows: int, deterministic: bool = False
) -> dict[str, str]:
    """``engine`` and ``memory``, in words, for ``rows`` trajectories of at most ``longest`` tokens.

    ``model`` is what :func:`rstar2cli.policy.describe.describe_model` says of it. Raises what starting the engine
    would raise, as far as that is known before: ``EnvironmentMissing`` or ``UsageError`` for the device, a package
    or a server that is not there, for a deterministic mode that the engine lacks.
    """
    if deterministic and config.name != "transformers":
        raise EnvironmentMissing(
            f"the {config.name} engine has no deterministic mode",
            hint="use --set engine.name=transformers for it",
        )
    if config.name == "http":
        return _servers(config)
    if config.name == "vllm" and importlib.util.find_spec("vllm") is None:
        raise EnvironmentMissing("the vllm engine is not installed", hint="see rstar2 doctor for how to install it")
    from rstar2cli.policy.devices import pick_device, pick_dtype

    device = pick_device(config.device)
    dtype = pick_dtype(config.dtype, device)
    running = min(rows, config.max_running)
    weights = model["parameters"] * dtype.itemsize / _GIB
    tokens = running * min(longest, config.max_length or longest)
    cache = min(tokens, config.capacity_tokens or tokens) * _token_bytes(model, dtype.itemsize) / _GIB
    if device.type == "cpu":  # elsewhere the share is of what is free when the engine starts
        cache = min(cache, memory_limit() * config.memory_share / _GIB)
    return {
        "engine": f"{config.name} on {device}, {str(dtype).removeprefix('torch.')}, {running} at once",
        "memory": f"{weights:.2f} GiB of weights, at most {cache:.2f} GiB of keys and values",
    }


def _servers(config: EngineConfig) -> dict[str, str]:
    from rstar2cli.engines.http_engine import HttpEngine

    engine = HttpEngine(config, "")
    try:
        return {
            "engine": f"http, {len(config.endpoints)} servers, prompt and response at most {engine.max_length} tokens",
            "memory": "that of the servers",
        }
    finally:
        engine.close()


def _token_bytes(model: dict[str, Any], itemsize: int) -> int:
    """Bytes of one token's keys and values in all layers."""
    config = json.loads((Path(model["path"]) / "config.json").read_text(encoding="utf-8"))
    heads = int(config["num_attention_heads"])
    head_dim = int(config.get("head_dim") or config["hidden_size"] // heads)
    kv_heads = int(config.get("num_key_value_heads") or heads)
    return int(config["num_hidden_layers"]) * 2 * kv_heads * head_dim * itemsize
