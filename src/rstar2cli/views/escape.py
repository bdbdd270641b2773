"""Text that a model, a tool or a data set wrote, made harmless for where it goes.

Nothing is dropped silently: a control character becomes a visible sign, so that a
reader sees that it was there and a terminal never acts on it (no colours, no
cursor moves, no OSC 52 clipboard writes, no right-to-left overrides).
"""

from __future__ import annotations

import html as _html
import re

_KEEP = {"\n", "\t"}
_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL, C1 (0x9b is a one-byte CSI)
    "\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff"  # invisible, line separators, direction overrides
    "\ud800-\udfff]"  # lone surrogates can't be written as UTF-8
)


def _visible(match: re.Match[str]) -> str:
    char = match.group()
    if char in _KEEP:
        return char
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)  # control pictures: ␛ for ESC
    if code == 0x7F:
        return "\u2421"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def plain(text: str) -> str:
    """The text for a terminal: newlines and tabs stay, every other control character becomes visible."""
    return _CONTROL.sub(_visible, text)


def one_line(text: str) -> str:
    """The text for one line of a terminal: like :func:`plain`, newlines and tabs visible too."""
    return plain(text).replace("\n", "\u23ce").replace("\t", "\u21e5")


def markup(text: str) -> str:
    """The text for a place where rich reads markup: like :func:`plain`, with its brackets neutralised."""
    from rich.markup import escape

    return escape(plain(text))


def html(text: str) -> str:
    """The text for an element or a quoted attribute of an HTML page: no tag, entity or quote survives."""
    return _html.escape(plain(text), quote=True)


def json_text(text: str) -> str:
    """JSON text for a terminal: the control characters that JSON may leave raw become ``\\uXXXX``.

    The value that the JSON stands for does not change. Expects text without raw newlines
    inside strings (all JSON); layout newlines stay.
    """
    return _CONTROL.sub(lambda m: m.group() if m.group() in _KEEP else f"\\u{ord(m.group()):04x}", text)
