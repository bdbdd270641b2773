"""Foreign rows to problems: columns found by name, answers by a named rule, integers only unless asked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from rstar2cli.answers import kinds
from rstar2cli.answers.boxes import last_boxed
from rstar2cli.curation.config import FieldsConfig
from rstar2cli.curation.sources.rows import Row
from rstar2cli.records import AnswerKind, Problem
from rstar2cli.records.codec import RowError, check_kind, record_from_row

PROMPT_COLUMNS = ("question", "problem", "prompt", "query", "instruction", "input")
ANSWER_COLUMNS = (
    "answer",
    "final_answer",
    "expected_answer",
    "ground_truth",
    "target",
    "reference_solution",
    "solution",
)
_INTEGER_KIND: AnswerKind = "integer"
_GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+")
_INTEGER = re.compile(r"([+-]?\d{1,100})(?:\.0+)?")


def to_problem(
    row: Row, fields: FieldsConfig, *, answer_kind: str, strict: bool = False, source: str | None = None
) -> Problem:
    """The problem in a row: ours (it has a ``kind``) or foreign. Raises ``RowError`` with the reason for a refusal.

    ``source``: source of foreign problems, with which their ids begin (default: the file's stem).
    """
    if isinstance(row.values.get("kind"), str) and "/" in row.values["kind"]:
        check_kind(row.values["kind"], Problem)
        problem, _ = record_from_row(dict(row.values), Problem, strict=strict)
        if answer_kind == "integer" and problem.answer_kind == "integer":
            integer(problem.answer)
        elif answer_kind == "integer":
            raise RowError(f"answer_kind is {problem.answer_kind}, not integer")
        return problem
    prompt = _prompt(_column(row.values, fields.prompt, PROMPT_COLUMNS, "prompt"))
    answer = _answer(_column(row.values, fields.answer, ANSWER_COLUMNS, "answer"), fields.answer_rule)
    try:
        text, kind = integer(answer), _INTEGER_KIND
    except RowError:
        if answer_kind == "integer":
            raise
        text = answer.strip()
        if not text:
            raise RowError("the answer is empty") from None
        kind = kinds.infer(text)
    source = source or next(source_names(row.file))
    return Problem(
        id=_identifier(row, fields, source),
        source=source,
        prompt=prompt,
        answer=text,
        answer_kind=kind,
        extra={"file": row.file, "line": row.line},
    )


def integer(text: str) -> str:
    """An integer in its plain form: no sign `+`, group commas, `$`, leading zeros or `.0`. Raises ``RowError``."""
    plain = text.strip().strip("$").strip()
    if _GROUPED.fullmatch(plain):
        plain = plain.replace(",", "")
    match = _INTEGER.fullmatch(plain)
    if match is None:
        shown = text if len(text) <= 60 else text[:59] + "…"
        raise RowError(f"the answer is no integer: {shown!r}")
    return str(int(match[1]))


def _answer(value: Any, rule: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise RowError(f"the answer is {type(value).__name__}, not text or a number")
    text = str(value)
    if rule == "hashes" or (rule == "auto" and "####" in text):
        if "####" not in text:
            raise RowError("no #### in the answer")
        return text.rsplit("####", 1)[1]
    boxed = last_boxed(text) if rule in ("auto", "boxed") else None
    if rule == "boxed" and boxed is None:
        raise RowError("no \\boxed{} in the answer")
    return text if boxed is None else boxed


def _prompt(value: Any) -> str:
    """A text, or the one user message of a list of chat messages."""
    if isinstance(value, list):
        asked = [m.get("content") for m in value if isinstance(m, dict) and m.get("role") == "user"]
        if len(asked) != 1:
            raise RowError(f"the prompt has {len(asked)} user messages, not one")
        value = asked[0]
    if not isinstance(value, str) or not value.strip():
        raise RowError("the prompt is empty or no text")
    return value.strip()


def _column(values: dict[str, Any], wanted: str | None, known: tuple[str, ...], what: str) -> Any:
    if wanted is not None:
        found: Any = values
        for step in wanted.split("."):
            if not isinstance(found, dict) or step not in found:
                raise RowError(f"no column {wanted!r} (fields.{what})")
            found = found[step]
        return found
    for name in known:
        for spelled in (name, name.capitalize()):
            if values.get(spelled) is not None:
                return values[spelled]
    raise RowError(f"no column for the {what}: none of {', '.join(known)}; name it with --set fields.{what}=…")


def _identifier(row: Row, fields: FieldsConfig, source: str) -> str:
    value = _column(row.values, fields.id, (), "id") if fields.id else row.values.get("id")
    if isinstance(value, str | int) and str(value):
        return f"{source}/{value}"
    return f"{source}/{row.line}"


def source_names(file: str) -> Iterator[str]:
    """Names for the source of a file's rows, shortest first: its name without endings, then with its directories.

    Standard input is `stdin`, a hub set its own name.
    """
    if file == "-" or file.startswith("hf:"):
        yield "stdin" if file == "-" else file
        return
    path = PurePath(file)
    name = path.name.split(".")[0] or path.name
    yield name
    for parent in path.parents:
        if parent.name:
            name = f"{parent.name}/{name}"
            yield name
    yield file
