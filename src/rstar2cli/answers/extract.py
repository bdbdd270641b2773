"""From a model's text to its answer: the last complete ``\\boxed{}`` of the last complete ``<answer>``."""

from __future__ import annotations

import re

_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
_BOX = re.compile(r"\\boxed\s*\{")


def answer_blocks(text: str) -> list[str]:
    """Contents of all complete ``<answer>…</answer>`` blocks, in order."""
    return _ANSWER.findall(text)


def count_answers(text: str) -> int:
    """Complete ``<answer>`` blocks in a text that the model wrote."""
    return len(answer_blocks(text))


def last_boxed(text: str) -> str | None:
    """Content of the last complete ``\\boxed{…}``, nested braces respected; null if there is none.

    A box inside a box belongs to the outer one. Escaped braces (``\\{``) do not nest.
    """
    found = None
    at = 0
    while (match := _BOX.search(text, at)) is not None:
        end = _closing_brace(text, match.end())
        if end is None:
            at = match.end()
        else:
            found = text[match.end() : end]
            at = end
    return found


def extract_answer(text: str) -> str | None:
    """The answer in a turn's text, spaces around it dropped; null if there is no complete one."""
    blocks = answer_blocks(text)
    if not blocks:
        return None
    boxed = last_boxed(blocks[-1])
    return None if boxed is None else boxed.strip()


def _closing_brace(text: str, start: int) -> int | None:
    """Position of the brace that closes the one before ``start``."""
    depth = 1
    at = start
    while at < len(text):
        if text[at] == "\\":
            at += 2
            continue
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at
        at += 1
    return None
