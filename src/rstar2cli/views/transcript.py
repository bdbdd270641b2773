"""A record as a sequence of blocks that a person reads: the common ground of terminal and HTML.

Blocks hold raw text; whoever draws them escapes it (:mod:`rstar2cli.views.terminal`,
:mod:`rstar2cli.views.page`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from rstar2cli.records import CallRecord, Conversation, Message, Record, Selection, ToolCall, Trajectory, Turn
from rstar2cli.views.tables import cell

BlockKind = Literal["heading", "facts", "prompt", "reason", "text", "call", "output", "answer", "tokens"]
Decode = Callable[[Sequence[int]], str]
"""Token ids to text, special tokens included."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """A token, or neighbours that only decode together, and whether the loss counts it."""

    text: str
    trained: bool


@dataclass(frozen=True, kw_only=True)
class Block:
    """One piece of a transcript."""

    kind: BlockKind
    """What it is; decides how it is drawn."""
    title: str = ""
    """Short line above it; may hold text from models (tool names)."""
    text: str = ""
    """The content."""
    language: str | None = None
    """For `call`: what the content is written in (`python`, `json`)."""
    facts: tuple[tuple[str, str], ...] = ()
    """For `facts`: names and values."""
    spans: tuple[Span, ...] = ()
    """For `tokens`: the pieces in order."""
    failed: bool = False
    """For `output`: whether the tool reports a failure."""


def transcript(record: Record, *, selection: Selection | None = None, decode: Decode | None = None) -> list[Block]:
    """Blocks of any record: trajectories and conversations as a dialogue, the others as their fields.

    ``decode`` adds the prompt of a trajectory, which is stored as tokens only; ``selection``
    adds what RoC thought of it.
    """
    if isinstance(record, Trajectory):
        return _trajectory(record, selection, decode)
    if isinstance(record, Conversation):
        return _conversation(record)
    return _fields(record)


def token_transcript(record: Trajectory, decode: Decode) -> list[Block]:
    """The exact tokens of a trajectory: the prompt, then the response with what was trained on marked."""
    trained = sum(record.mask)
    return [
        _heading(record),
        Block(kind="tokens", title="prompt", spans=_spans(record.prompt_ids, [False] * len(record.prompt_ids), decode)),
        Block(
            kind="tokens",
            title=f"response: {len(record.response_ids)} tokens, {trained} trained on",
            spans=_spans(record.response_ids, record.mask, decode),
        ),
    ]


_SEGMENT = re.compile(
    r"<tool_call>(?P<call>.*?)(?:</tool_call>|\Z)|<answer>(?P<answer>.*?)</answer>|<reason>(?P<reason>.*?)(?:</reason>|\Z)",
    re.DOTALL,
)
_STOP = re.compile(r"(?:<\|im_end\|>|<\|endoftext\|>)\s*\Z")


def split_turn(text: str) -> list[tuple[str, str]]:
    """A turn's text as (`reason` | `call` | `answer` | `text`, content), in order.

    The turn begins inside the `<reason>` that the template opened; reasoning that is never
    closed ends at the first call or answer. Empty pieces are left out.
    """
    text = _STOP.sub("", text)
    end = min((place for tag in ("</reason>", "<tool_call>", "<answer>") if (place := text.find(tag)) >= 0), default=-1)
    head = text if end < 0 else text[:end]
    rest = "" if end < 0 else text[end:].removeprefix("</reason>")
    pieces = [("reason", head)]
    last = 0
    for match in _SEGMENT.finditer(rest):
        pieces.append(("text", rest[last : match.start()]))
        pieces.append((str(match.lastgroup), match[str(match.lastgroup)]))
        last = match.end()
    pieces.append(("text", rest[last:]))
    return [(kind, content.strip("\n")) for kind, content in pieces if content.strip() or kind in ("call", "answer")]


def _trajectory(record: Trajectory, selection: Selection | None, decode: Decode | None) -> list[Block]:
    blocks = [_heading(record)]
    if decode is not None:
        blocks.append(Block(kind="prompt", title="prompt", text=decode(record.prompt_ids)))
    for number, turn in enumerate(record.turns, 1):
        blocks.extend(_turn(turn, number))
    blocks.append(Block(kind="facts", title="outcome", facts=_outcome(record)))
    if selection is not None:
        blocks.append(Block(kind="facts", title="selection by RoC", facts=_selected(selection, record)))
    return blocks


def _turn(turn: Turn, number: int) -> list[Block]:
    note = "" if turn.finish == "stop" else f" · ended by {turn.finish}"
    blocks = [Block(kind="heading", title=f"turn {number} · {turn.n_tokens} tokens{note}")]
    calls = list(turn.calls)
    for kind, content in split_turn(turn.text):
        if kind == "call" and calls:
            blocks.extend(_recorded_call(calls.pop(0)))
        elif kind == "call":
            blocks.append(Block(kind="call", title="call that was not read", text=content))
        elif kind == "answer":
            blocks.append(Block(kind="answer", title="answer", text=content))
        else:
            blocks.append(Block(kind="reason" if kind == "reason" else "text", text=content))
    for call in calls:  # calls the text does not show: never hide what was run
        blocks.extend(_recorded_call(call))
    return blocks


def _recorded_call(call: CallRecord) -> list[Block]:
    blocks = _call(call.name, call.arguments)
    took = "" if call.seconds is None else f" · {call.seconds:.2f} s"
    if call.outcome is None:
        blocks.append(Block(kind="output", title="not answered", failed=True))
    else:
        blocks.append(
            Block(
                kind="output", title=f"tool: {call.outcome}{took}", text=call.output or "", failed=call.outcome != "ok"
            )
        )
    return blocks


def _call(name: str | None, arguments: str) -> list[Block]:
    """The code of a Python call as code, its stdin apart; anything else as it was written."""
    try:
        values = json.loads(arguments)
    except (ValueError, RecursionError):
        values = None
    if isinstance(values, dict) and isinstance(values.get("code"), str):
        blocks = [Block(kind="call", title=f"call {name}", text=values["code"].strip("\n"), language="python")]
        others = {key: value for key, value in values.items() if key != "code" and value != ""}
        if others:
            blocks.append(
                Block(kind="call", title="with", text=json.dumps(others, ensure_ascii=False), language="json")
            )
        return blocks
    language = "json" if values is not None else None
    return [Block(kind="call", title=f"call {name or '(could not be decoded)'}", text=arguments, language=language)]


def _conversation(record: Conversation) -> list[Block]:
    blocks = [Block(kind="heading", title=f"conversation {record.id} · {record.source}")]
    if record.tools.strip() not in ("", "[]"):
        blocks.append(Block(kind="call", title="tools offered", text=record.tools, language="json"))
    for message in record.messages:
        blocks.extend(_message(message))
    if record.extra:
        blocks.append(Block(kind="facts", title="extra", facts=_pairs(record.extra)))
    return blocks


def _message(message: Message) -> list[Block]:
    trained = message.role == "assistant" and message.train is not False
    head = Block(
        kind="heading", title=f"{message.role}{'' if trained or message.role != 'assistant' else ' (not trained on)'}"
    )
    if message.role == "tool":
        return [Block(kind="output", title="tool", text=message.content, failed=message.content.startswith(_FAILURES))]
    if message.role != "assistant":
        return [head, Block(kind="prompt", text=message.content)]
    blocks = [head]
    for kind, content in split_turn(message.content):
        title = "answer" if kind == "answer" else ""
        blocks.append(Block(kind=kind, title=title, text=content))  # type: ignore[arg-type]  # split_turn's kinds are ours
    for call in message.tool_calls:
        blocks.extend(_message_call(call))
    return blocks


_FAILURES = ("Tool call failure", "Failed to decode tool call", "Error when executing tool")
"""How the text of a failed response begins; conversations keep no typed outcome."""


def _message_call(call: ToolCall) -> list[Block]:
    return _call(call.name, call.arguments)


def _fields(record: Record) -> list[Block]:
    values = msgspec.to_builtins(record)
    kind = values.pop("kind")
    return [
        Block(kind="heading", title=f"{kind} {values.get('id', values.get('problem_id', ''))}".rstrip()),
        Block(kind="facts", facts=_pairs(values)),
    ]


def _heading(record: Trajectory) -> Block:
    return Block(kind="heading", title=f"trajectory {record.id} · problem {record.problem_id} · {record.source}")


def _outcome(record: Trajectory) -> tuple[tuple[str, str], ...]:
    written = sum(record.mask)
    facts: dict[str, Any] = {
        "answer": record.answer,
        "gold": record.gold,
        "verdict": record.verdict + (f" ({record.reason})" if record.reason else ""),
        "reward": record.reward,
        "finish": record.finish,
        "tokens": f"{len(record.response_ids)} in the response, {written} by the model",
        "turns": record.n_turns,
        "tool calls": f"{record.n_tool_calls} answered, {record.n_tool_errors} failed",
        "answers": record.n_answers,
        "p_err": record.p_err,
        "p_format": record.p_format,
        "seed": record.seed,
    }
    if "total" in record.timings:
        facts["seconds"] = record.timings["total"]
    return _pairs(facts)


def _selected(selection: Selection, record: Trajectory) -> tuple[tuple[str, str], ...]:
    facts: dict[str, Any] = {
        "kept": selection.kept,
        "why": selection.why,
        "advantage": selection.advantage,
        "p_total": record.p_err + record.p_format,
        **selection.extra,
    }
    return _pairs(facts)


def _pairs(values: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((name, cell(value)) for name, value in values.items())


def _spans(ids: Sequence[int], mask: Sequence[bool], decode: Decode) -> tuple[Span, ...]:
    """One span a token; tokens that only decode together (parts of a UTF-8 character) share one."""
    spans: list[Span] = []
    held: list[int] = []
    for place, (token, trained) in enumerate(zip(ids, mask, strict=True)):
        held.append(token)
        text = decode(held)
        last = place + 1 == len(ids) or mask[place + 1] != trained
        if text.endswith("\ufffd") and len(held) < 4 and not last:
            continue
        spans.append(Span(text=text, trained=trained))
        held = []
    return tuple(spans)
