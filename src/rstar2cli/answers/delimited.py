r"""Formulas in a text: what stands between ``$``, ``$$``, ``\\(``, ``\\[`` or ``**``, in time linear in the text."""

from __future__ import annotations

import re
from dataclasses import dataclass

_OPENING = re.compile(r"\\\\|\\\$|\$\$|\$|\\\(|\\\[|\*\*")
_CLOSING = {"$$": "$$", "$": "$", "\\(": "\\)", "\\[": "\\]", "**": "**"}


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text that may be the answer."""

    start: int
    end: int
    content: str


def formulas(text: str) -> list[Piece]:
    """All formulas, in order; bold ones are those that stay on one line."""
    found: list[Piece] = []
    without_end: set[str] = set()
    at = 0
    while (match := _OPENING.search(text, at)) is not None:
        opening = match[0]
        at = match.end()
        if opening not in _CLOSING or opening in without_end:
            continue
        end = _end(text, at, opening)
        if end < 0:
            without_end.add(opening)  # nothing later can close either
            continue
        content = text[at:end]
        if not content or (opening == "**" and ("\n" in content or "*" in content)):
            continue
        found.append(Piece(match.start(), end + len(opening), content))
        at = end + len(opening)
    return found


def _end(text: str, at: int, opening: str) -> int:
    """Where the closing mark begins; a dollar sign that is escaped closes nothing."""
    closing = _CLOSING[opening]
    end = text.find(closing, at)
    while opening == "$" and end > 0 and text[end - 1] == "\\":
        end = text.find(closing, end + 1)
    return end
