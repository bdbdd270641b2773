"""From configuration to a running engine; each engine is imported only when it is chosen."""

from __future__ import annotations

from rstar2cli.engines.base import Engine
from rstar2cli.engines.config import EngineConfig


def build_engine(config: EngineConfig, policy_path: str, *, version: str | None = None) -> Engine:
    """Load the model at ``policy_path`` into the configured engine.

    ``version`` names the weights; by default it is the digest of the checkpoint. Raises
    ``InputMissing`` or ``DataError`` for the model, ``EnvironmentMissing`` for the engine.
    """
    if config.name == "transformers":
        return _transformers(config, policy_path, version)
    if config.name == "vllm":
        return _vllm(config, policy_path, version)
    return _http(config, policy_path, version)


def _transformers(config: EngineConfig, policy_path: str, version: str | None) -> Engine:
    from rstar2cli.engines.transformers_engine import TransformersEngine
    from rstar2cli.policy.load import load_policy

    policy = load_policy(policy_path, device=config.device, dtype=config.dtype)
    return TransformersEngine(policy.model, config, version or policy.digest)


def _vllm(config: EngineConfig, policy_path: str, version: str | None) -> Engine:
    from rstar2cli.engines.vllm_engine import VllmEngine
    from rstar2cli.policy.digest import checkpoint_digest
    from rstar2cli.policy.load import resolve_model

    path = resolve_model(policy_path)
    return VllmEngine(str(path), config, version or checkpoint_digest(path))


def _http(config: EngineConfig, policy_path: str, version: str | None) -> Engine:
    from rstar2cli.engines.http_engine import HttpEngine
    from rstar2cli.policy.digest import checkpoint_digest
    from rstar2cli.policy.load import resolve_model

    return HttpEngine(config, version or checkpoint_digest(resolve_model(policy_path)))
