"""ChatML dialogues to tokens: prompts of problems, tool turns, whole conversations for SFT.

One template serves rollout, SFT, evaluation and ``show``. Every text is encoded by itself
between the ChatML marks, and an assistant's text separately from the header that the
template opens, so a conversation made of a rollout's texts has the same boundaries as the
rollout. A conversation made from a problem names it in ``extra["problem"]``: its first user
message then is the bare problem, and its rendering starts with exactly the tokens of
:meth:`Dialogue.problem_prompt`. Other conversations carry neither the math instruction nor
the Python tool, only what they bring themselves.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rstar2cli.core.errors import DataError
from rstar2cli.dialogue.calls import format_call
from rstar2cli.dialogue.config import DialogueConfig
from rstar2cli.dialogue.encoding import Encoder
from rstar2cli.dialogue.prompts import instruction, system_text
from rstar2cli.dialogue.tools import PYTHON_TOOL_SCHEMA, PYTHON_TOOLS_JSON
from rstar2cli.records import Conversation, Message, Problem

PROBLEM_KEY = "problem"
"""Key in a conversation's ``extra`` that says: the first user message is a bare problem."""


@dataclass(kw_only=True)
class Rendered:
    """Tokens of a conversation."""

    ids: list[int] = field(default_factory=list)
    """All tokens."""
    mask: list[bool] = field(default_factory=list)
    """True on the tokens to learn: an assistant's text and its stop token."""

    def add(self, ids: Sequence[int], train: bool = False) -> None:
        """Append tokens with one mask value."""
        self.ids += ids
        self.mask += [train] * len(ids)


class Dialogue:
    """The template over one model's tokenizer. Safe to use from many threads."""

    def __init__(self, tokenizer: Any, config: DialogueConfig) -> None:
        """Raises ``DataError`` if the tokenizer lacks the ChatML marks."""
        self.config = config
        self._tokenizer = tokenizer
        self._encoder = Encoder(tokenizer)
        eos = getattr(tokenizer, "eos_token_id", None)
        self.stop_ids: list[int] = sorted({self._encoder.end} | ({int(eos)} if eos is not None else set()))
        """Tokens that end a turn: the ChatML end mark, and the tokenizer's own end of text."""

    def problem_prompt(self, problem: Problem) -> list[int]:
        """Tokens up to the opened assistant header and ``<reason>`` for a problem."""
        out = Rendered()
        self._say(out, "system", system_text(self.config.system, [PYTHON_TOOL_SCHEMA]))
        self._say(out, "user", instruction(self.config.system) + problem.prompt)
        self._open_assistant(out)
        return out.ids

    def tool_turn(self, outputs: Sequence[str]) -> list[int]:
        """What goes between a turn's stop token and the next turn: the responses in one user message."""
        out = Rendered()
        out.add(self._encoder.text("\n"))
        self._say(out, "user", _tool_blocks(outputs))
        self._open_assistant(out)
        return out.ids

    def render(self, conversation: Conversation) -> Rendered:
        """Tokens and loss mask of a conversation. The mask is false on headers and the opened ``<reason>``.

        Raises ``DataError`` if ``tools`` is not a JSON list or there are no messages.
        """
        messages = conversation.messages
        if not messages:
            raise DataError(f"conversation {conversation.id}: no messages")
        out = Rendered()
        is_problem = PROBLEM_KEY in conversation.extra
        own = messages[0].content if messages[0].role == "system" else None
        tools = [PYTHON_TOOL_SCHEMA] if is_problem else _tools_of(conversation)
        self._say(out, "system", system_text(self.config.system, tools, own))
        at = 0 if own is None else 1
        opening = instruction(self.config.system) if is_problem else ""
        while at < len(messages):
            message = messages[at]
            if message.role == "assistant":
                self._open_assistant(out)
                self._finish_assistant(out, message)
                at += 1
            elif message.role == "tool":
                end = _end_of_tools(messages, at)
                self._say(out, "user", _tool_blocks([answer.content for answer in messages[at:end]]))
                at = end
            else:
                self._say(out, message.role, opening + message.content)
                opening = "" if message.role == "user" else opening
                at += 1
        return out

    def chat_prompt(self, conversation: Conversation) -> list[int]:
        """Tokens of a conversation with the next assistant turn opened, for prompts that are not problems."""
        out = self.render(conversation)
        self._open_assistant(out)
        return out.ids

    def turn_text(self, ids: Sequence[int]) -> str:
        """Text of a turn, its stop token left out."""
        body = ids[:-1] if ids and ids[-1] in self.stop_ids else ids
        return self.decode(body)

    def decode(self, ids: Sequence[int]) -> str:
        """Text of any tokens, special tokens spelled out."""
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return text

    def count(self, text: str) -> int:
        """Tokens of a plain text."""
        return len(self._encoder.text(text))

    def _say(self, out: Rendered, role: str, text: str) -> None:
        """A whole message that is never learned."""
        self._open(out)
        out.add(self._encoder.text(f"{role}\n{text}"))
        out.add([self._encoder.end])

    def _open_assistant(self, out: Rendered) -> None:
        self._open(out)
        out.add(self._encoder.text(f"assistant\n{self.config.reason_open}"))

    def _finish_assistant(self, out: Rendered, message: Message) -> None:
        train = message.train is not False
        calls = [format_call(call.name, call.arguments) for call in message.tool_calls]
        text = "\n".join([message.content, *calls] if message.content else calls)
        out.add(self._encoder.text(text), train)
        out.add([self._encoder.end], train)

    def _open(self, out: Rendered) -> None:
        if out.ids and out.ids[-1] == self._encoder.end:
            out.add(self._encoder.text("\n"))
        out.add([self._encoder.start])


def conversation_of(problem: Problem, messages: list[Message], *, extra: dict[str, Any] | None = None) -> Conversation:
    """A conversation that starts with a bare problem; ``messages`` follow it.

    Its rendering begins with the tokens of :meth:`Dialogue.problem_prompt`, whatever the configuration.
    """
    return Conversation(
        id=problem.id,
        source=problem.source,
        tools=PYTHON_TOOLS_JSON,
        messages=[Message(role="user", content=problem.prompt), *messages],
        extra={**(extra or {}), PROBLEM_KEY: problem.id},
    )


def _tool_blocks(outputs: Sequence[str]) -> str:
    return "\n".join(f"<tool_response>\n{output}\n</tool_response>" for output in outputs)


def _end_of_tools(messages: list[Message], start: int) -> int:
    end = start
    while end < len(messages) and messages[end].role == "tool":
        end += 1
    return end


def _tools_of(conversation: Conversation) -> list[dict[str, Any]]:
    try:
        tools = json.loads(conversation.tools or "[]")
    except ValueError as error:
        raise DataError(f"conversation {conversation.id}: tools is not JSON: {error}") from error
    if not isinstance(tools, list):
        raise DataError(f"conversation {conversation.id}: tools is not a list")
    return tools
