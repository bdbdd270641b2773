"""Splitting a text at marks that no bracket encloses. Any opening bracket is closed by any closing one: ``(0, 1]``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

_OPENING = "([{"
_CLOSING = ")]}"


def top_level(text: str) -> Iterator[int]:
    """Positions that no bracket encloses, brackets themselves left out; a LaTeX command counts once, at its start."""
    depth = at = 0
    while at < len(text):
        char = text[at]
        if char == "\\":
            end = at + 1
            while end < len(text) and text[end].isalpha():
                end += 1
            if end == at + 1:
                end += 1
            command = text[at:end]
            if command in ("\\{", "\\langle", "\\lfloor", "\\lceil", "\\begin"):
                depth += 1
            elif command in ("\\}", "\\rangle", "\\rfloor", "\\rceil", "\\end"):
                depth -= 1
            elif depth == 0:
                yield at
            at = end
            continue
        if char in _OPENING:
            depth += 1
        elif char in _CLOSING:
            depth -= 1
        elif depth == 0:
            yield at
        at += 1


def split(text: str, marks: Sequence[str]) -> list[tuple[str, str]]:
    """Parts between the marks, each with the mark before it (the first with ``""``)."""
    if not any(mark in text for mark in marks):
        return [("", text.strip())]
    parts: list[tuple[str, str]] = []
    start, mark = 0, ""
    for at in top_level(text):
        if at < start:
            continue
        found = next((m for m in marks if text.startswith(m, at) and _whole(text, at, m)), None)
        if found is not None:
            parts.append((mark, text[start:at].strip()))
            start, mark = at + len(found), found
    parts.append((mark, text[start:].strip()))
    return parts


def balanced(text: str) -> bool:
    """Whether every bracket that opens is closed, of whatever shape."""
    depths = [depth for _, depth in _depths(text)]
    return not depths or (min(depths) >= 0 and depths[-1] == 0)


def closes_last(text: str) -> bool:
    """Whether the bracket that opens first, of whatever shape, is closed by the last character."""
    return next((at == len(text) - 1 for at, depth in _depths(text) if depth == 0), False)


def _depths(text: str) -> Iterator[tuple[int, int]]:
    """(position, depth after it) of every bracket that no backslash escapes."""
    depth = at = 0
    while at < len(text):
        if text[at] == "\\":
            at += 2
            continue
        if text[at] in _OPENING or text[at] in _CLOSING:
            depth += 1 if text[at] in _OPENING else -1
            yield at, depth
        at += 1


def depth(text: str) -> int:
    """Deepest nesting of brackets of any shape."""
    now = deepest = 0
    for char in text:
        if char in _OPENING:
            now += 1
            deepest = max(deepest, now)
        elif char in _CLOSING:
            now -= 1
    return deepest


def _whole(text: str, at: int, mark: str) -> bool:
    """A mark of letters is a whole word or command, not the beginning of a longer one."""
    if not mark[-1].isalpha():
        return True
    after = at + len(mark)
    if after < len(text) and text[after].isalpha():
        return False
    return mark[0] == "\\" or at == 0 or not (text[at - 1].isalpha() or text[at - 1] == "\\")
