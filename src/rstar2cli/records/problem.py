"""A problem with a known answer."""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from rstar2cli.records.base import Json, Record

AnswerKind = Literal["integer", "rational", "expression", "choice", "text"]


class Problem(Record, kw_only=True, tag="problem/1"):
    """A question that a final answer decides."""

    record_name: ClassVar[str] = "problem"
    record_version: ClassVar[int] = 1

    id: str
    """Unique within its source; stable over runs."""
    source: str
    """Where it comes from: `synth:family`, a benchmark's or a file's name."""
    prompt: str
    """The question alone, without instructions on how to answer."""
    answer: str
    """The gold answer as text."""
    answer_kind: AnswerKind = "integer"
    """How the answer is compared."""
    attempts: int | None = None
    """Answers sampled to measure difficulty; null if never measured."""
    solved: int | None = None
    """How many of the attempts were correct; null if never measured."""
    tags: list[str] = []
    """Free labels: topic, level, split."""
    extra: Json = msgspec.field(default_factory=dict)
    """Fields of the source that have no column (for `synth:` family, parameters, split)."""
