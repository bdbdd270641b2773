"""Tool calls in the text of a turn: complete ``<tool_call>…</tool_call>`` blocks, in order."""

from __future__ import annotations

import json
import json.decoder
import re
from dataclasses import dataclass
from typing import Any

OPEN = "<tool_call>"
CLOSE = "</tool_call>"
_BLOCK = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
_SPACE = re.compile(r"[ \t\n\r]*")


@dataclass(frozen=True, kw_only=True)
class ParsedCall:
    """One complete call. Either ``error`` is set, or ``name`` and ``arguments`` are."""

    text: str
    """What stands between the tags, as written."""
    name: str | None = None
    """Name of the tool."""
    arguments: dict[str, Any] | None = None
    """Decoded arguments."""
    arguments_text: str = ""
    """The arguments as the model wrote them (the whole text if the call could not be decoded)."""
    error: str | None = None
    """The parser's message if the call is not valid JSON or has not the shape of a call."""


def parse_calls(text: str) -> list[ParsedCall]:
    """All complete calls of one turn, in order. An opened call without its end is not a call."""
    return [_parse(match.group(1)) for match in _BLOCK.finditer(text)]


def unfinished_call(text: str) -> str | None:
    """Text of a call that was opened but not closed at the end of the turn; null if there is none."""
    end = 0
    for match in _BLOCK.finditer(text):
        end = match.end()
    start = text.find(OPEN, end)
    return None if start < 0 else text[start + len(OPEN) :]


def format_call(name: str, arguments: str) -> str:
    """A call as the template writes it; ``arguments`` (JSON text) is inserted as it is."""
    return f'{OPEN}\n{{"name": {json.dumps(name, ensure_ascii=False)}, "arguments": {arguments}}}\n{CLOSE}'


def _parse(text: str) -> ParsedCall:
    try:
        call = json.loads(text)
    except ValueError as error:  # JSONDecodeError, or a whole number with too many digits
        return ParsedCall(text=text, arguments_text=text, error=str(error))
    except RecursionError:
        return ParsedCall(text=text, arguments_text=text, error="nested too deeply")
    fault = _shape_fault(call)
    if fault is not None:
        return ParsedCall(text=text, arguments_text=text, error=fault)
    written = _value_text(text, "arguments")
    return ParsedCall(
        text=text,
        name=call["name"],
        arguments=call.get("arguments", {}),
        arguments_text=written or "{}",
    )


def _shape_fault(call: Any) -> str | None:
    if not isinstance(call, dict):
        return 'a call is a JSON object with "name" and "arguments"'
    if not isinstance(call.get("name"), str):
        return '"name" must be a string' if "name" in call else 'missing "name"'
    if not isinstance(call.get("arguments", {}), dict):
        return '"arguments" must be an object'
    return None


def _value_text(text: str, key: str) -> str:
    """The source text of a top-level key's last value in a valid JSON object; empty if absent."""
    decoder = json.JSONDecoder()
    found = ""
    at = _skip(text, text.index("{") + 1)
    while text[at] != "}":
        name, at = decoder.raw_decode(text, at)
        start = _skip(text, _skip(text, at) + 1)  # past the colon
        _, at = decoder.raw_decode(text, start)
        if name == key:
            found = text[start:at]
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at
