r"""Boxes in a text: every complete ``\boxed{}``, and the list that several make."""

from __future__ import annotations

import re

from rstar2cli.answers.delimited import Piece

_BOX = re.compile(r"\\(?:f?boxed|fbox)(?![A-Za-z])\s*(\{|[^\s{\\]|\\[A-Za-z]+)")
OPEN_BOX = re.compile(r"\\f?boxed\s*\{")
_BETWEEN = re.compile(r"\\(?:quad|qquad|text|mathrm|[,;!() \[\]])|[\s${}()\[\]*]+|\\")
_SEPARATOR = re.compile(
    r"(?:[a-z]{1,15} )?(?P<mark>,|;|and|or|&|/|[-•](?= |$)|\d{1,2}\.)(?: ?(?:and|or))?"
    r"(?: (?:maybe|possibly|perhaps|also))?"
    r"(?: ?[a-z](?:_?\w)? ?=)?",
    re.IGNORECASE,
)
"""What divides boxes of one list: a comma, a word, a bullet; the name of the next one may follow."""
_MOST_BOXES = 100
"""Boxes that one list may have."""
_BETWEEN_CHARS = 80


def last_boxed(text: str) -> str | None:
    """Content of the last complete ``\\boxed{…}``, nested braces respected; null if there is none.

    A box inside a box belongs to the outer one. Escaped braces (``\\{``) do not nest.
    """
    found = boxes(text, braced_only=True)
    return found[-1].content if found else None


def boxes(text: str, *, braced_only: bool = False) -> list[Piece]:
    """Every complete box, outer ones only."""
    found = []
    at = 0
    while (match := _BOX.search(text, at)) is not None:
        if match[1] != "{":
            if not braced_only:
                found.append(Piece(match.start(), match.end(), match[1]))
            at = match.end()
            continue
        end = _closing_brace(text, match.end())
        if end is None:
            # nothing after it can close either, but a box inside it may
            at = match.end()
            if text.count("}", at) == 0:
                break
        else:
            found.append(Piece(match.start(), end + 1, text[match.end() : end]))
            at = end + 1
    return found


def boxed(text: str) -> str | None:
    """The last box of a text, or the list that it ends."""
    return joined(text, boxes(text))


def joined(text: str, found: list[Piece]) -> str | None:
    """The last box; a list, if separators alone stand between it and the boxes before it."""
    if not found:
        return None
    found = [box for box in found if box.content.strip()] or found  # an empty one is often an echo of the prompt
    last = found[-1]
    contents, marks = [last.content.strip()], []
    for box in reversed(found[-_MOST_BOXES:-1]):
        if last.start - box.end > _BETWEEN_CHARS:
            break
        between = _SEPARATOR.fullmatch(" ".join(_BETWEEN.sub(" ", text[box.end : last.start]).split()))
        if between is None:
            break
        marks.append(" or " if between["mark"].lower() in ("or", "/") else ", ")
        contents.append(box.content.strip())
        last = box
    said = contents[-1]
    for mark, content in zip(reversed(marks), reversed(contents[:-1]), strict=True):
        said += mark + content
    return said


def _closing_brace(text: str, start: int) -> int | None:
    """Position of the brace that closes the one before ``start``."""
    depth = 1
    for match in re.compile(r"\\.|[{}]", re.DOTALL).finditer(text, start):
        if match[0] == "{":
            depth += 1
        elif match[0] == "}":
            depth -= 1
            if depth == 0:
                return match.start()
    return None
