"""A conversation to learn from."""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from rstar2cli.records.base import Json, Record

Role = Literal["system", "user", "assistant", "tool"]


class ToolCall(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One call of a tool inside an assistant message."""

    id: str | None = None
    """Identifier that the answering message names; null where the source has none."""
    name: str
    """Name of the tool."""
    arguments: str
    """Arguments as JSON text, inserted into the dialogue as written."""


class Message(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One message."""

    role: Role
    """Who speaks; `tool` is rendered under the user role inside `<tool_response>`."""
    content: str
    """Text of the message; an assistant's begins after the opening `<reason>` of the template."""
    tool_calls: list[ToolCall] = []
    """Calls that follow the content of an assistant message, in order."""
    tool_call_id: str | None = None
    """For role `tool`: the call that this answers; null where the source has none."""
    train: bool | None = None
    """Whether the loss counts this message; null = yes for assistant messages, never for others."""


class Conversation(Record, kw_only=True, tag="conversation/1"):
    """Messages between user, assistant and tools."""

    record_name: ClassVar[str] = "conversation"
    record_version: ClassVar[int] = 1

    id: str
    """Unique within its source."""
    source: str
    """Where it comes from."""
    tools: str = "[]"
    """JSON text: list of the tool schemas offered."""
    messages: list[Message]
    """The messages in order."""
    extra: Json = msgspec.field(default_factory=dict)
    """Fields of the source that have no column."""
