"""The sandbox that a configuration asks for."""

from __future__ import annotations

from rstar2cli.sandbox.config import SandboxConfig
from rstar2cli.sandbox.outcome import Sandbox


def build_sandbox(config: SandboxConfig) -> Sandbox:
    """Processes of our own, or a client of the service that ``endpoints`` names.

    Raises ``EnvironmentMissing`` if that service does not answer.
    """
    if config.endpoints:
        from rstar2cli.sandbox.client import HttpSandbox

        return HttpSandbox(config.endpoints[0], token=config.token)
    from rstar2cli.sandbox.local import LocalSandbox

    return LocalSandbox(config)
