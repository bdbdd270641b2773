"""Limits and size of the sandbox."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class SandboxConfig:
    """How code is run."""

    workers: int = 0
    """Calls run at once; 0 = the cores this process may use."""
    wall_s: float = 4.0
    """Wall-clock limit of a call, from the start of its process, in seconds."""
    cpu_s: float = 4.0
    """CPU limit of a call in seconds."""
    memory_mib: int = 1024
    """Memory limit of a call in MiB."""
    output_mib: int = 8
    """Output after which a call is ended, in MiB (stdout and stderr together)."""
    keep_chars: int = 65536
    """Characters of each stream kept in the outcome, head and tail."""
    file_mib: int = 16
    """Largest file a call may write, in MiB."""
    processes: int = 32
    """Processes and threads a call may have."""
    isolation: str = "auto"
    """Layers to use: `auto` = all that this host has; `none` = limits only."""
