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

import re
from dataclasses import dataclass
from typing import Literal

from rstar2cli.answers.delimited import Piece, formulas

Fallback = Literal["answer_tag", "boxed", "phrase", "math", "number"]

ALL_FALLBACKS: tuple[Fallback, ...] = ("answer_tag", "boxed", "phrase", "math", "number")
TAIL = 20_000
"""Characters at the end that phrases, formulas and numbers are looked for in."""
_OPEN, _CLOSE = "<answer>", "</answer>"
_BOX = re.compile(r"\\(?:f?boxed|fbox)(?![A-Za-z])\s*(\{|[^\s{\\]|\\[A-Za-z]+)")
_OPEN_BOX = re.compile(r"\\f?boxed\s*\{")
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
_END_MARKS = ("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|eot_id|>")
"""What ends the model's own text; another turn may follow it."""
_HOPE = "I hope it is correct"
_FINAL = re.compile(r"final\s+answer(?:\s+is\b|\**\s*[:=])", re.IGNORECASE)
_PHRASE = re.compile(
    r"\b(?:(?:final\s+)?answer|(?:correct\s+)?(?:option|choice)(?=\s+is\b))"
    r"(?:\s+(?:is|would be|equals|should be)\b(?:,? (?:therefore|thus|then|hence|simply|indeed)\b,?)?|\**\s*[:=]"
    r"|\s+(?=\$|\\\(|\\\[))[\s:]*"
    r"|^####[ \t]*(?=\S)",  # the mark of GSM8K
    re.IGNORECASE | re.MULTILINE,
)
_CHOSEN = re.compile(
    r"\b(?:choose|pick|select|option|choice)\s+(?:is\s+)?\(?([A-J])\)?(?![\w'])(?!\s+(?:is|was)\s+(?:not|wrong|incorrect|false))"
    r"|(?<![\w'])\(?([A-J])\)?\s+is\s+(?:the\s+)?(?:correct|right|(?:final\s+)?answer)\b"
)
"""A letter that is said to be chosen. Capital, so that no article is one."""
_LETTER_ALONE = re.compile(r"\s*(?:\(?([A-J])\)?[.:]?|\(?[A-J](?:\)|[.:](?= ))[^\n.]{1,40})\.?\s*")
_LETTER_FIRST = re.compile(r"\(?([A-J])\)?(?:[,.:]|\s+(?:because|since|as)\b)")
_ASIDE = re.compile(r"\([^()]*[A-Za-z]{2}[^()]*\)")
_BULLET = re.compile(r"[-*•] ")
_NUMBER = re.compile(
    r"(?<![\w.])[-+\u2212]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:\s?/\s?\d+(?![\w.]))?(?:\s?%)?|(?<![\w.])[-+\u2212]?\.\d+"
)
_LIST_MARK = re.compile(r"\s*(?:,|;|and|or|,\s*and|,\s*or)\s*(?:[a-z]\s*=\s*)?")
_NO_ANSWER = re.compile(
    r"(?:\b(?:not|isn't|step|theorem|lemma|equation|figure|case|than|least|most|mod|for n =)|\u2260|\\ne|[<>]"
    r"|\d\s*[-+*/^])\s*\(?$",
    re.IGNORECASE,
)
"""What stands before a number that is not an answer."""
_SENTENCE_END = re.compile(r"\.(?:\s+[A-Z<(]|\s*$)|\n\s*\n")


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


def last_boxed(text: str) -> str | None:
    """Content of the last complete ``\\boxed{…}``, nested braces respected; null if there is none.

    A box inside a box belongs to the outer one. Escaped braces (``\\{``) do not nest.
    """
    boxes = _boxes(text, braced_only=True)
    return boxes[-1][2] if boxes else None


def extract_answer(text: str, extraction: Extraction = STRICT) -> str | None:
    """The answer in a text, spaces around it dropped; null if there is none."""
    blocks = answer_blocks(text)
    if blocks:
        boxed = last_boxed(blocks[-1])
        if boxed is not None:
            return boxed.strip()
    if not extraction.fallbacks:
        return None
    tried = extraction.fallbacks
    if blocks and "answer_tag" in tried:
        return _boxed(blocks[-1]) or blocks[-1].strip() or None
    text = _own_turn(_without_thoughts(text))
    tail = _tail(text)
    if "boxed" in tried:
        boxes = _boxes(text)
        boxed = _joined(text, boxes)
        if boxed is not None and not ("phrase" in tried and _final_after_box(text[boxes[-1][1] :])):
            return boxed.strip()
        if boxed is None and _OPEN_BOX.search(text):
            return None  # cut off in the middle of its answer
    found = _phrase(tail) if "phrase" in tried else None
    if found is None and "phrase" in tried:
        found = _chosen(tail)
    if found is None:
        found = _last(tail, math="math" in tried, number="number" in tried)
    return found.strip() or None if found is not None else None


def _boxes(text: str, *, braced_only: bool = False) -> list[tuple[int, int, str]]:
    """(start, end, content) of every complete box, outer ones only."""
    found = []
    at = 0
    while (match := _BOX.search(text, at)) is not None:
        if match[1] != "{":
            if not braced_only:
                found.append((match.start(), match.end(), match[1]))
            at = match.end()
            continue
        end = _closing_brace(text, match.end())
        if end is None:
            # nothing after it can close either, but a box inside it may
            at = match.end()
            if text.count("}", at) == 0:
                break
        else:
            found.append((match.start(), end + 1, text[match.end() : end]))
            at = end + 1
    return found


def _boxed(text: str) -> str | None:
    return _joined(text, _boxes(text))


def _joined(text: str, boxes: list[tuple[int, int, str]]) -> str | None:
    """The last box; a list, if separators alone stand between it and the boxes before it."""
    if not boxes:
        return None
    boxes = [box for box in boxes if box[2].strip()] or boxes  # an empty one is often an echo of the prompt
    last = boxes[-1]
    contents, marks = [last[2].strip()], []
    for box in reversed(boxes[-_MOST_BOXES:-1]):
        if last[0] - box[1] > _BETWEEN_CHARS:
            break
        between = _SEPARATOR.fullmatch(" ".join(_BETWEEN.sub(" ", text[box[1] : last[0]]).split()))
        if between is None:
            break
        marks.append(" or " if between["mark"].lower() in ("or", "/") else ", ")
        contents.append(box[2].strip())
        last = box
    joined = contents[-1]
    for mark, content in zip(reversed(marks), reversed(contents[:-1]), strict=True):
        joined += mark + content
    return joined


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


def _final_after_box(rest: str) -> bool:
    """Whether what follows the last box names a final answer of its own."""
    tail = rest[-TAIL:]
    said = [match.end() for match in _FINAL.finditer(tail)]
    return bool(said) and (_NUMBER.search(tail, said[0]) is not None or bool(formulas(tail[said[0] :])))


def _phrase(text: str) -> str | None:
    matches = list(_PHRASE.finditer(text))
    if not matches:
        return None
    rest = text[matches[-1].end() :]
    if "\n" in matches[-1][0]:
        rest = _BULLET.sub("", rest, count=1) if _BULLET.match(rest) else rest
    if matches[-1][0].startswith("#"):
        rest = rest.partition("\n")[0]
    if rest.strip() in ("", ":"):
        return None
    sentence = rest[: end.start()] if (end := _SENTENCE_END.search(rest)) else rest
    sentence = sentence.strip().strip("*").strip()
    if not sentence or len(sentence) > 1024:
        return None
    boxed = _boxed(sentence)
    if boxed is not None:
        return boxed
    math = _only_math(sentence)
    if math is not None:
        return math
    letter = _LETTER_FIRST.match(sentence)
    if letter is not None:
        return letter[1]
    if len(sentence.split()) > 3:
        return _last(sentence, math=True, number=True) or sentence
    return sentence


def _chosen(text: str) -> str | None:
    """The letter of a multiple choice that the text names last, or that is all of it."""
    if _LETTER_ALONE.fullmatch(text):
        return text.strip()
    letters = [match[1] or match[2] for match in _CHOSEN.finditer(text)]
    return letters[-1] if letters else None


def _only_math(text: str) -> str | None:
    text = text.strip().rstrip(".")
    found = formulas(text)
    whole = len(found) == 1 and found[0].start == 0 and found[0].end == len(text)
    return found[0].content if whole else None


def _last(text: str, *, math: bool, number: bool) -> str | None:
    """The last formula, or the last number that stands after it."""
    found, at = None, 0
    if math:
        pieces = formulas(text)
        if pieces:
            found = _listed(text, pieces)
            at = pieces[-1].end
    if number:
        pieces = _numbers(_ASIDE.sub(lambda match: " " * len(match[0]), text), at) or _numbers(text, at)
        if pieces:
            return _listed(text, pieces)
    return found


def _numbers(text: str, at: int) -> list[Piece]:
    """Numbers from ``at`` on, without last ones that are no answers."""
    found = [Piece(match.start(), match.end(), match[0]) for match in _NUMBER.finditer(text, at)]
    while found and _NO_ANSWER.search(text[max(0, found[-1].start - 30) : found[-1].start]):
        found.pop()
    return found


def _listed(text: str, matches: list[Piece]) -> str:
    """The last match, with those before it that only a comma, "and" or "or" divides: 6 and 7 is no answer 7."""
    said = matches[-1].content
    for before, after in zip(reversed(matches[:-1]), reversed(matches[1:]), strict=True):
        between = _LIST_MARK.fullmatch(text[before.end : after.start][:20])
        if between is None or after.start - before.end > 20:
            break
        said = f"{before.content}{' or ' if 'or' in between[0] else ', '}{said}"
    return said
