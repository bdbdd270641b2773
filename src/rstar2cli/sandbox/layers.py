"""Which walls this host can put around the code it runs."""

from __future__ import annotations

from dataclasses import dataclass

from rstar2cli.core.errors import EnvironmentMissing
from rstar2cli.sandbox.config import SandboxConfig
from rstar2cli.sandbox.local import LocalSandbox

_ABSENT = {
    "user ids": "calls are the same user: namespaces and the filter keep them apart, and they share a process limit",
    "cgroup memory and pids": "memory is limited per process and sampled for the whole call; no anonymous files",
    "user namespace": "not needed as root",
}
"""What follows where a layer is missing that the jail can do without."""


@dataclass(frozen=True, kw_only=True)
class LayerState:
    """One layer of isolation."""

    name: str
    """Name of the layer."""
    present: bool
    """Whether it is in use."""
    detail: str
    """What was found, or what its absence means."""


def layers() -> list[LayerState]:
    """Start a sandbox and ask it. Where there can be no jail, the one row says why."""
    try:
        box = LocalSandbox(SandboxConfig(workers=1, sessions=0))
    except EnvironmentMissing as error:
        return [LayerState(name="jail", present=False, detail=error.message)]
    try:
        rows = [LayerState(name=name, present=True, detail="available") for name in box.layers]
        for name, why in box.missing.items():
            rows.append(LayerState(name=name, present=False, detail=f"{why}: {_ABSENT.get(name, '')}".rstrip(": ")))
        return rows
    finally:
        box.close()
