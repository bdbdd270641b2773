r"""From a model's text to its answer.

The rule of training and of every evaluation with our prompts is strict: the last complete
``\boxed{}`` of the last complete ``<answer>``. For texts of other models ``Fallbacks`` names, in
order, what else counts as the answer; the first that finds something decides:

1. ``answer_tag``: the last complete ``<answer>``: its boxes, else its text;
2. ``boxed``: the last box, or the list that boxes make which only separators divide (``\boxed{1}
   and \boxed{2}``), unless the words "final answer" come after it; a box that is never closed, with
   no other there, is an answer cut off;
3. ``phrase``: what follows the last "final answer is", "answer is", "answer:";
4. ``math`` and ``number``: the last formula between math delimiters or in bold, or the last number
   outside of one, whichever comes later.

What stands in ``<think>`` is no answer. Every search takes time in proportion to the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rstar2cli.answers.boxes import OPEN_BOX, boxed, boxes, joined, last_boxed
from rstar2cli.answers.fallbacks import TAIL, chosen, final_after_box, last_said, phrase

Fallback = Literal["answer_tag", "boxed", "phrase", "math", "number"]
ALL_FALLBACKS: tuple[Fallback, ...] = ("answer_tag", "boxed", "phrase", "math", "number")
_OPEN, _CLOSE = "<answer>", "</answer>"
_END_MARKS = ("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|eot_id|>")
"""What ends the model's own text; another turn may follow it."""
_HOPE = "I hope it is correct"


@dataclass(frozen=True, kw_only=True)
class Extraction:
    """Where an answer may stand."""

    fallbacks: tuple[Fallback, ...] = ()
    """What is tried when the strict rule finds nothing, in the order of this module's list."""


STRICT = Extraction()
LENIENT = Extraction(fallbacks=ALL_FALLBACKS)


def answer_blocks(text: str) -> list[str]:
    """Contents of all complete ``<answer>…</answer>`` blocks, in order."""
    blocks: list[str] = []
    at = 0
    while True:
        start = text.find(_OPEN, at)
        end = text.find(_CLOSE, start + len(_OPEN)) if start >= 0 else -1
        if end < 0:
            return blocks
        blocks.append(text[start + len(_OPEN) : end])
        at = end + len(_CLOSE)


def count_answers(text: str) -> int:
    """Complete ``<answer>`` blocks in a text that the model wrote."""
    return len(answer_blocks(text))


def extract_answer(text: str, extraction: Extraction = STRICT) -> str | None:
    """The answer in a text, spaces around it dropped; null if there is none."""
    blocks = answer_blocks(text)
    if blocks:
        answer = last_boxed(blocks[-1])
        if answer is not None:
            return answer.strip()
    if not extraction.fallbacks:
        return None
    tried = extraction.fallbacks
    if blocks and "answer_tag" in tried:
        return boxed(blocks[-1]) or blocks[-1].strip() or None
    text = _own_turn(_without_thoughts(text))
    tail = _tail(text)
    if "boxed" in tried:
        pieces = boxes(text)
        answer = joined(text, pieces)
        if answer is not None and not ("phrase" in tried and final_after_box(text[pieces[-1].end :])):
            return answer.strip()
        if answer is None and OPEN_BOX.search(text):
            return None  # cut off in the middle of its answer
    found = phrase(tail) if "phrase" in tried else None
    if found is None and "phrase" in tried:
        found = chosen(tail)
    if found is None:
        found = last_said(tail, math="math" in tried, number="number" in tried)
    return found.strip() or None if found is not None else None


def _without_thoughts(text: str) -> str:
    """What follows the last ``</think>``; of a thought that never ends, nothing."""
    if "</think>" in text:
        text = text.rpartition("</think>")[2]
    return text.partition("<think>")[0]


def _own_turn(text: str) -> str:
    """Without what follows the end of the model's turn."""
    for mark in _END_MARKS:
        before, found, after = text.partition(mark)
        while found and not before.strip():
            before, found, after = after.partition(mark)
        text = before
    return text


def _tail(text: str) -> str:
    text = text[-TAIL:]
    before, found, _ = text.rpartition(_HOPE)
    return (before if found and before.strip() else text).rstrip()
