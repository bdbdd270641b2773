"""Verdicts for rows of JSONL, in order, as they come; a row that can't be judged is answered with what is wrong."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Literal, cast, get_args

import msgspec

from rstar2cli.grading.grade import Grade, Grader
from rstar2cli.records import AnswerKind

Kind = Literal["answer", "response"]
BAD_ROW = "bad_row"
"""Reason of a row without a readable gold and answer: undecided, since the model has no part in it."""
_AHEAD = 256
_ROW = msgspec.json.Decoder(dict[str, msgspec.Raw])
_VALUE = msgspec.json.Decoder(float_hook=str)


@dataclass(frozen=True, kw_only=True)
class Fields:
    """Where a row has what."""

    gold: str = "gold"
    """Column of the gold answer."""
    pred: str = "pred"
    """Column of the answer or response to judge."""
    kind: Kind | None = None
    """Whether ``pred`` is an answer or a response with one; null: the row's own `kind`, else an answer."""
    answer_kind: AnswerKind | None = None
    """What every gold must be; null: the row's own `answer_kind`, else whatever it reads as."""
    expected: str | None = None
    """Column that says whether the answer is correct, if the rows are labelled."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """One row with its verdict."""

    line: int
    """Line of the input, from 1."""
    row: bytes
    """The row as JSON with `verdict` and `reason`, and for a response `extracted`; values are as they were."""
    verdict: str
    reason: str | None
    fault: str | None = None
    """What is wrong with the row itself."""
    expected: bool | None = None
    """Its label, if there is one."""


class _Refused(Exception):
    """The row can't be judged; the message says why."""


def judge(
    lines: Iterable[tuple[int, bytes | str]], fields: Fields, strict: Grader, lenient: Grader
) -> Iterator[Judged]:
    """Verdicts of all lines, in their order, each as soon as it and all before it are known.

    Lines are read ahead in a thread, so that one row that takes long keeps no other waiting.
    A line is its bytes, or a text that says why there are none. ``strict`` compares answers, ``lenient``
    also extracts them from responses. An error of
    ``lines`` is raised after the verdicts of the lines before it.
    """
    waiting: queue.Queue[
        tuple[int, dict[str, msgspec.Raw] | None, bool, Future[Grade] | str, bool | None] | BaseException | None
    ]
    waiting = queue.Queue(_AHEAD)

    def feed() -> None:
        try:
            for number, line in lines:
                waiting.put((number, *_begin(line, fields, strict, lenient)))
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            waiting.put(error)
            return
        waiting.put(None)

    threading.Thread(target=feed, name="verify-reader", daemon=True).start()
    while (item := waiting.get()) is not None:
        if isinstance(item, BaseException):
            raise item
        yield _finish(*item)


def _begin(
    line: bytes | str, fields: Fields, strict: Grader, lenient: Grader
) -> tuple[dict[str, msgspec.Raw] | None, bool, Future[Grade] | str, bool | None]:
    """(row, whether it is a response, the verdict to come or what is wrong, label)."""
    row: dict[str, msgspec.Raw] | None = None
    try:
        if isinstance(line, str):
            raise _Refused(line)
        row = _decoded(line)
        kind = fields.kind or _own_kind(row)
        gold, pred = _text(row, fields.gold), _text(row, fields.pred)
        answer_kind = fields.answer_kind or _own_answer_kind(row)
        label = _label(row, fields.expected)
    except _Refused as refusal:
        return row, False, str(refusal), None
    if kind == "response":
        return row, True, lenient.submit(pred or "", gold or "", answer_kind), label
    return row, False, strict.submit_answer(pred or "", gold or "", answer_kind), label


def _finish(
    number: int, row: dict[str, msgspec.Raw] | None, is_response: bool, verdict: Future[Grade] | str, label: bool | None
) -> Judged:
    if isinstance(verdict, str):
        shown: dict[str, object] = dict(row or {})
        shown |= {"verdict": "undecided", "reason": BAD_ROW, "error": f"line {number}: {verdict}"}
        return Judged(line=number, row=msgspec.json.encode(shown), verdict="undecided", reason=BAD_ROW, fault=verdict)
    grade = verdict.result()
    assert row is not None
    judged: dict[str, object] = {**row, **({"extracted": grade.answer} if is_response else {})}
    judged |= {"verdict": grade.verdict, "reason": grade.reason}
    return Judged(
        line=number, row=msgspec.json.encode(judged), verdict=grade.verdict, reason=grade.reason, expected=label
    )


def _decoded(line: bytes) -> dict[str, msgspec.Raw]:
    try:
        if not line.strip():
            raise _Refused("a blank line")
        line.decode()  # the JSON decoder leaves the values as they are
        return _without_old_verdict(_ROW.decode(line))
    except UnicodeDecodeError as error:
        raise _Refused(f"not UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise _Refused("not JSON that can be read: nested too deep") from None
    except msgspec.DecodeError as error:
        text = str(error)
        raise _Refused(
            "not a JSON object" if text.startswith("Expected `object`") else f"not JSON: {_told(line, text)}"
        ) from None


def _told(line: bytes, message: str) -> str:
    """What is wrong with a line that is no JSON; the decoder calls half a surrogate pair truncated data."""
    try:
        json.loads(line)
    except ValueError:
        return message
    return "half of a surrogate pair (\\ud800 to \\udfff) that the other half is missing of"


def _text(row: dict[str, msgspec.Raw], name: str) -> str | None:
    """A column as text; a number as it is written."""
    if name not in row:
        raise _Refused(f"no field {name!r}; the row has {', '.join(row) or 'none'}")
    value = _value(row[name], name)
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return bytes(row[name]).decode().strip()
    article = {"bool": "true or false", "list": "a list", "dict": "an object"}[type(value).__name__]
    raise _Refused(f"{name!r} is {article}, not text or a number")


def _value(raw: msgspec.Raw, name: str) -> object:
    try:
        return _VALUE.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _Refused(f"{name!r} is not JSON: {error}") from None


def _own_kind(row: dict[str, msgspec.Raw]) -> Kind:
    own = _string(row, "kind")
    if own is None or "/" in own:  # that of a record of ours: trajectory/1
        return "answer"
    if own not in get_args(Kind):
        raise _Refused(f"its kind {own!r} is neither answer nor response; say with --kind")
    return cast(Kind, own)


def _own_answer_kind(row: dict[str, msgspec.Raw]) -> AnswerKind | None:
    own = _string(row, "answer_kind")
    if own is not None and own not in get_args(AnswerKind):
        raise _Refused(f"its answer_kind {own!r} is none of {', '.join(get_args(AnswerKind))}; say with --answer-kind")
    return cast(AnswerKind | None, own)


def _without_old_verdict(row: dict[str, msgspec.Raw]) -> dict[str, msgspec.Raw]:
    """The row without what an earlier verify added; columns of the same names that are the user's stay."""
    ours = {"extracted"} if "verdict" in row else set()
    if ours and "reason" in row and _string(row, "reason") == BAD_ROW:
        ours.add("error")
    return {name: value for name, value in row.items() if name not in ours}


def _string(row: dict[str, msgspec.Raw], name: str) -> str | None:
    value = _value(row[name], name) if name in row else None
    return value if isinstance(value, str) else None


def _label(row: dict[str, msgspec.Raw], name: str | None) -> bool | None:
    if name is None:
        return None
    value = _value(row[name], name) if name in row else None
    if not isinstance(value, bool):
        raise _Refused(f"{name!r} is not true or false")
    return value
