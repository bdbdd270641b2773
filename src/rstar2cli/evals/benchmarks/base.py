"""What every benchmark's file declares, and the readings of public files that they share."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rstar2cli.answers import kinds
from rstar2cli.records import AnswerKind, Problem

Row = Mapping[str, Any]

_CHAT = re.compile(r"\A<\|im_start\|>user\n(.*?)(?:<\|im_end\|>.*)?\Z", re.DOTALL)
_REQUEST = re.compile(r"\n*Please reason step by step, and put your final answer within \\boxed\{\}\.?\s*\Z")


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """One public problem set."""

    name: str
    """Name in `NAME:FILE` and in the scores."""
    hub: str
    """Where it is published: `owner/name` or `owner/name@config`, on the hub."""
    split: str
    """Its split there."""
    to_problem: Callable[[Row, int], Problem]
    """(row, its number from 0) → problem. Raises ``ValueError`` for a row that is not one of the set."""


def column(row: Row, *names: str) -> str:
    """The first of these columns that the row has, as text. Raises ``ValueError`` if it has none."""
    for name in names:
        if row.get(name) not in (None, ""):
            return str(row[name])
    raise ValueError(f"none of the columns {', '.join(names)}")


def bare_question(text: str) -> str:
    """A question without the chat marks and the request for `\\boxed{}` that some copies carry."""
    match = _CHAT.match(text)
    return _REQUEST.sub("", match[1] if match else text).strip()


def final_answer(text: str) -> str:
    """What follows the last `####`, else the whole text, trimmed."""
    return text.rpartition("####")[2].strip()


def answer_kind(gold: str) -> AnswerKind:
    """The strictest comparison that can read the gold."""
    return kinds.infer(gold)
