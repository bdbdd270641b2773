"""From configuration to engines."""

from pathlib import Path

import pytest

from rstar2cli.core.errors import EnvironmentMissing, InputMissing, UsageError
from rstar2cli.engines.build import build_engine
from rstar2cli.engines.config import EngineConfig
from rstar2cli.policy.digest import checkpoint_digest
from rstar2cli.policy.tiny import init_tiny


def test_the_version_is_the_digest_unless_it_is_named(tmp_path: Path) -> None:
    init_tiny(tmp_path / "m", seed=1)
    for version in (None, "run@3"):
        engine = build_engine(EngineConfig(max_running=2), str(tmp_path / "m"), version=version)
        assert engine.version == (version or checkpoint_digest(tmp_path / "m"))
        engine.close()


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputMissing):
        build_engine(EngineConfig(), str(tmp_path / "none"))
    with pytest.raises(UsageError, match="addresses"):
        build_engine(EngineConfig(name="http"), str(tmp_path), version="v")
    with pytest.raises(EnvironmentMissing, match=r"127\.0\.0\.1:9"):
        build_engine(EngineConfig(name="http", endpoints=("http://127.0.0.1:9",)), str(tmp_path), version="v")
