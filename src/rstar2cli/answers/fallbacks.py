"""Where an answer stands in a text that has no box: after a phrase, as a letter, as the last formula or number."""

from __future__ import annotations

import re

from rstar2cli.answers.boxes import boxed
from rstar2cli.answers.delimited import Piece, formulas

TAIL = 20_000
"""Characters at the end that phrases, formulas and numbers are looked for in."""
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


def final_after_box(rest: str) -> bool:
    """Whether what follows the last box names a final answer of its own."""
    tail = rest[-TAIL:]
    said = [match.end() for match in _FINAL.finditer(tail)]
    return bool(said) and (_NUMBER.search(tail, said[0]) is not None or bool(formulas(tail[said[0] :])))


def phrase(text: str) -> str | None:
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
    answer = boxed(sentence)
    if answer is not None:
        return answer
    math = _only_math(sentence)
    if math is not None:
        return math
    letter = _LETTER_FIRST.match(sentence)
    if letter is not None:
        return letter[1]
    if len(sentence.split()) > 3:
        return last_said(sentence, math=True, number=True) or sentence
    return sentence


def chosen(text: str) -> str | None:
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


def last_said(text: str, *, math: bool, number: bool) -> str | None:
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
