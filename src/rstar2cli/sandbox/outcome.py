"""What can become of a piece of code: the outcomes that the model sees, and ours.

The two groups never mix: infrastructure outcomes are retried, counted, and lose the
trajectory; they are never shown to the model and never scored as a wrong answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, Literal, Protocol

import msgspec

ModelOutcome = Literal["ok", "error", "exit", "timeout", "cpu", "memory", "output_limit", "signal"]
InfraOutcome = Literal["overloaded", "setup_failed", "lost"]
OutcomeKind = Literal[
    "ok", "error", "exit", "timeout", "cpu", "memory", "output_limit", "signal", "overloaded", "setup_failed", "lost"
]
INFRASTRUCTURE: frozenset[str] = frozenset({"overloaded", "setup_failed", "lost"})
CLOCK_DEPENDENT: frozenset[str] = frozenset({"timeout", "cpu", "memory"})
"""Outcomes that another run of the same code may not give again."""


class Outcome(msgspec.Struct, kw_only=True, frozen=True):
    """Result of one call."""

    kind: OutcomeKind
    """What became of the code."""
    stdout: str = ""
    """Standard output, undecodable bytes replaced, at most the output limit (head and tail kept)."""
    stderr: str = ""
    """Standard error of the user's code; the traceback of an uncaught exception is not in it."""
    error: str | None = None
    """For `error`: `Type at line N: message` and the source line; null otherwise."""
    traceback: str | None = None
    """For `error`: the long form, frames of the user's code only; null otherwise."""
    exit_code: int | None = None
    """For `exit`: the status."""
    signal: int | None = None
    """For `signal`: its number."""
    limit: str | None = None
    """For limits: the one that was met, as the model reads it (`4 s`, `1 GiB`, `8 MiB`)."""
    stdout_bytes: int = 0
    """Bytes written to standard output in all."""
    stderr_bytes: int = 0
    """Bytes written to standard error in all."""
    truncated: bool = False
    """Whether output was cut."""
    seconds: float = 0.0
    """Wall time from the start of the process."""
    cpu_seconds: float = 0.0
    """CPU time of the process and its children."""
    waited_seconds: float = 0.0
    """Of a service's answer: time from the request's arrival to the start of the process."""
    detail: str | None = None
    """For infrastructure outcomes: what went wrong, for logs; never shown to the model."""

    @property
    def infrastructure(self) -> bool:
        """Whether this is our failure and not the code's."""
        return self.kind in INFRASTRUCTURE


class SandboxRefused(Exception):
    """A session could not be opened."""

    def __init__(self, kind: InfraOutcome, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind
        """Which of our failures it is."""
        self.detail = detail
        """What went wrong, for logs."""


class Sandbox(Protocol):
    """Something that runs code. Methods are safe to call from any thread."""

    def submit(
        self,
        code: str,
        stdin: str = "",
        *,
        seed: int = 0,
        wall_s: float | None = None,
        memory_mib: int | None = None,
        files: Mapping[str, bytes] | None = None,
    ) -> Future[Outcome]:
        """Queue a stateless call; the future never raises for what the code does.

        ``wall_s``: limit of this call instead of the configured one, up to the configured ``max_wall_s``;
        ``memory_mib``: a lower limit than the configured one; ``files``: put into the call's directory.
        """
        ...

    def open_session(self, *, seed: int = 0) -> Future[str]:
        """Start a process that keeps its state from cell to cell; its unguessable id.

        The future raises :class:`SandboxRefused` if it can't be opened.
        """
        ...

    def run_cell(self, session: str, code: str, *, sequence: int) -> Future[Outcome]:
        """Run a session's next cell; ``sequence`` counts from 0, and each is executed at most once.

        A repeated number gives the outcome that its cell had, or `lost`. A session that is not known,
        was lost or has expired gives `lost`; one that its own code ended gives `error`.
        """
        ...

    def close_session(self, session: str) -> None:
        """End a session; one that is not known is no error."""
        ...

    def close(self) -> None:
        """Kill what runs and free everything."""
        ...


class ServedSandbox(Sandbox, Protocol):
    """A sandbox that a service can stand on: it also tells of itself."""

    workers: int
    """Calls run at once."""

    @property
    def layers(self) -> list[str]:
        """Layers of isolation in use."""
        ...

    @property
    def missing(self) -> dict[str, str]:
        """Layers that are not, each with the reason."""
        ...

    def stats(self) -> dict[str, Any]:
        """Gauges and counters: running, waiting, warm_processes, restarts, sessions, outcomes by kind."""
        ...
