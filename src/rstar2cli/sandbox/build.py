"""The sandbox that a configuration asks for."""

from __future__ import annotations

from pathlib import Path

from rstar2cli.core.errors import InputMissing
from rstar2cli.sandbox.config import SandboxConfig
from rstar2cli.sandbox.outcome import Sandbox


def build_sandbox(config: SandboxConfig) -> Sandbox:
    """Processes of our own, or a client of the service that ``endpoints`` names.

    Raises ``EnvironmentMissing`` if that service does not answer, ``InputMissing`` for an unreadable token file.
    """
    if config.endpoints:
        from rstar2cli.sandbox.client import HttpSandbox

        return HttpSandbox(config.endpoints, token=_token(config.token_file))
    from rstar2cli.sandbox.local import LocalSandbox

    return LocalSandbox(config)


def _token(path: str) -> str:
    if not path:
        return ""
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise InputMissing(f"sandbox.token_file {path}: {error.strerror}") from error
