"""What client and service say to each other, as JSON."""

from __future__ import annotations

import msgspec

from rstar2cli.sandbox.outcome import Outcome


class CallRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Body of ``POST /v1/run``; the answer is an :class:`Outcome`."""

    code: str
    """Program to run."""
    stdin: str = ""
    """Its standard input."""
    seed: int = 0
    """Seed of every random choice in the call."""
    wall_s: float | None = None
    """Wall-clock limit instead of the service's, up to its ``max_wall_s``."""
    memory_mib: int | None = None
    """Memory limit below the service's."""


class BatchRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Body of ``POST /v1/run/batch``; the answer is a stream of :class:`BatchResult`, a line each."""

    calls: list[CallRequest]
    """The calls."""


class BatchResult(msgspec.Struct, kw_only=True):
    """One line of a batch's answer, written when its call is finished."""

    index: int
    """Place of the call in the request."""
    outcome: Outcome
    """What became of it."""


class SessionRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Body of ``POST /v1/sessions``."""

    seed: int = 0
    """Seed of every random choice in the session."""


class SessionOpened(msgspec.Struct, kw_only=True):
    """Its answer. The header ``X-Sandbox-Session`` says the same, for load balancers."""

    session: str
    """Unguessable id, part of the session's further addresses."""


class CellRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Body of ``POST /v1/sessions/{session}/cells``; the answer is an :class:`Outcome`."""

    code: str
    """The cell."""
    sequence: int
    """Its number, from 0; each is executed at most once."""


class Refusal(msgspec.Struct, kw_only=True):
    """Body of every answer that is no success."""

    error: str
    """What is wrong; `overloaded` (503) when there is no room and the same request may be sent again later."""


class Health(msgspec.Struct, kw_only=True):
    """Answer of ``GET /health``."""

    status: str
    """`ok`, or `draining` while it is being stopped."""
    workers: int
    """Calls run at once."""
    pending: int
    """Calls accepted and not finished."""
    capacity: int
    """Most that may be pending."""
    layers: list[str]
    """Isolation layers in use."""
    missing: dict[str, str] = {}
    """Layers that are not, each with the reason."""
