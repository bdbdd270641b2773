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
