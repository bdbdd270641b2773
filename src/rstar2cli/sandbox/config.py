"""Limits and size of the sandbox."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import Literal

_POSITIVE = ("max_wall_s", "session_idle_s", "session_total_s")


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
    max_wall_s: float = 60.0
    """Most that a call may ask for instead of `wall_s`, in seconds."""
    sessions: int = 64
    """Sessions open at once."""
    session_idle_s: float = 600.0
    """Time without a cell after which a session is closed, in seconds."""
    session_total_s: float = 3600.0
    """Time after which a session is closed, and its CPU limit, in seconds."""
    packages: tuple[str, ...] = (
        *("numpy", "scipy", "sympy", "mpmath", "gmpy2", "pandas", "networkx", "matplotlib"),
        *("scikit-learn", "statsmodels", "python-dateutil", "tqdm", "more-itertools", "sortedcontainers"),
    )
    """Distributions that code may import, with those that they need; the ones not installed are left out."""
    isolation: Literal["auto", "none"] = "auto"
    """`auto` = a jail, with all layers that this host has, or a refusal; `none` = limits only."""
    cgroup: str = ""
    """Directory of a delegated control group (version 2) without processes; empty = the one that we are in."""
    endpoints: tuple[str, ...] = ()
    """Addresses of `rstar2 sandbox-serve` to use instead of processes of our own."""
    token_file: str = ""
    """File that holds that service's token, if it asks for one (the token itself would end up in `config.json`)."""

    def __post_init__(self) -> None:
        for name in ("wall_s", "cpu_s", "memory_mib", "output_mib", "keep_chars", "file_mib", "processes", *_POSITIVE):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be positive")
        if self.workers < 0:
            raise ValueError("workers must be 0 (as many as cores) or more")
        if self.sessions < 0:
            raise ValueError("sessions must be 0 (none) or more")
        if self.memory_mib < 64:
            raise ValueError("memory_mib must be at least 64: an interpreter needs that much address space")
        if len(set(self.endpoints)) < len(self.endpoints):
            raise ValueError("endpoints names an address twice")


LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, kw_only=True)
class ServeConfig:
    """The sandbox as an HTTP service."""

    host: str = "127.0.0.1"
    """Address to listen on; any other than loopback needs a token."""
    port: int = 8642
    """Port to listen on; 0 = any free one."""
    token: str = ""
    """Token that clients must send (`Authorization: Bearer …`); empty = none is asked for."""
    allow: tuple[str, ...] = ()
    """Networks (`10.0.0.0/8`) whose clients may ask without a token, besides this machine."""
    names: tuple[str, ...] = ()
    """Names by which clients call this service, besides its addresses and the machine's own name (no token)."""
    queue: int = 4096
    """Calls accepted and not finished; past it requests get 503."""
    batch: int = 4096
    """Most calls in one batch."""
    wait_s: float = 60.0
    """Time that calls of the drop-in endpoints wait for room before they are told `queue_timeout`."""
    body_mib: int = 16
    """Largest request body in MiB."""
    read_s: float = 30.0
    """Time a request's head, and again its body, may take to arrive, in seconds."""
    drain_s: int = 30
    """Seconds that running requests get to finish when the service is stopped."""
    sandbox: SandboxConfig = field(default_factory=SandboxConfig)
    """Limits of the calls."""

    def __post_init__(self) -> None:
        if self.host not in LOOPBACK and not self.token and not self.allow:
            raise ValueError(
                f"host {self.host} can be reached from other machines: set a token (RSTAR2_TOKEN), allow networks "
                "(--allow) or use 127.0.0.1"
            )
        for network in self.allow:
            ipaddress.ip_network(network, strict=False)
        if not 0 <= self.port <= 65535:
            raise ValueError("port must be between 0 and 65535")
        for name in ("queue", "batch", "wait_s", "body_mib", "read_s", "drain_s"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be positive")
        if self.sandbox.endpoints:
            raise ValueError("sandbox.endpoints: a service runs the calls itself")
