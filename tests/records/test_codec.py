"""Rows to records: strict, and clear about what is wrong."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rstar2cli.records import KINDS, Conversation, Metric, Problem, Trajectory
from rstar2cli.records.codec import NewerVersion, RowError, decode_line, encode_line

GOOD = {"kind": "problem/1", "id": "a", "source": "s", "prompt": "1 + 1?", "answer": "2"}


def line(**changes: object) -> bytes:
    return json.dumps({**GOOD, **changes}).encode()


def reason(data: bytes, cls=Problem, **options) -> str:
    with pytest.raises(RowError) as caught:
        decode_line(data, cls, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"answer": 12.5}, "expected string, got 12.5 at $.answer"),
        ({"attempts": "12.5"}, 'expected integer or null, got "12.5" at $.attempts'),
        ({"attempts": 1.5}, "expected integer or null, got 1.5 at $.attempts"),
        ({"tags": ["a", 3]}, "expected string, got 3 at $.tags[1]"),
        ({"extra": [1]}, "expected object, got [1] at $.extra"),
        (
            {"answer_kind": "number"},
            'expected one of "integer", "rational", "expression", "choice", "text", got "number" at $.answer_kind',
        ),
        ({"prompt": None}, "expected string, got null at $.prompt"),
        ({"kind": "metric/1"}, 'expected a problem, got a metric ("metric/1" at $.kind)'),
        ({"kind": "problem"}, 'expected kind "problem/1", got "problem" at $.kind'),
        ({"kind": None}, 'no "kind": every row of this input begins with "kind": "problem/1"'),
        ({"kind": "problem/0"}, "problem/0 is no known version of problem; this rstar2 reads problem/1"),
    ],
)
def test_misfits_say_what_was_expected_found_and_where(changes, wanted):
    assert reason(line(**changes)) == wanted


def test_missing_field():
    row = {key: value for key, value in GOOD.items() if key != "answer"}
    assert reason(json.dumps(row).encode()) == 'missing field "answer" at $'


def test_nested_path():
    row = {"kind": "conversation/1", "id": "a", "source": "s", "messages": [{"role": "user", "content": "", "name": 1}]}
    assert reason(json.dumps(row).encode(), Conversation) == 'unknown field "name" at $.messages[0]'
    row["messages"] = [{"role": "robot", "content": ""}]
    assert reason(json.dumps(row).encode(), Conversation).startswith('expected one of "system", "user"')


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"[1, 2]", "expected object, got [1,2]"),
        (b"", "not JSON: input data was truncated"),
        (b'{"a": 1,}', "not JSON: trailing comma in object (byte 8)"),
        (b'{"a": "\xff"}', "not JSON: invalid UTF-8 encoded string"),
        (b'{"kind": "problem/1", "extra": {"a": ' + b"[" * 100_000, "not JSON that can be read: nested too deeply"),
    ],
    ids=["array", "empty", "comma", "utf8", "deep"],
)
def test_what_is_no_row(data, wanted):
    assert reason(data).lower().startswith(wanted.lower())


def test_a_newer_version_is_refused_as_such():
    with pytest.raises(NewerVersion, match="problem/7 was written by a newer rstar2; this one reads problem up to"):
        decode_line(line(kind="problem/7"), Problem)


def test_unknown_fields_go_to_extra_and_keep_what_is_there():
    record, unknown = decode_line(line(level=3, topic="sums", extra={"a": 1}), Problem)
    assert unknown == ["level", "topic"]
    assert record.extra == {"level": 3, "topic": "sums", "a": 1}
    assert decode_line(line(level=3, extra={"level": 4}), Problem)[0].extra == {"level": 4}  # what is there wins
    assert reason(line(level=3), strict=True) == 'unknown field "level" at $ (--strict)'


def test_long_values_are_cut_in_messages():
    text = reason(line(answer=["x" * 10_000]))
    assert len(text) < 200
    assert "…" in text


def test_line_separators_of_unicode_are_text():
    record, _ = decode_line(line(prompt="a\u2028b\x85c"), Problem)
    assert record.prompt == "a\u2028b\x85c"
    assert encode_line(record).count(b"\n") == 1


VALUES = (
    st.none()
    | st.booleans()
    | st.text()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
)


@given(st.text(), st.text(), st.lists(st.text()), st.dictionaries(st.text(), VALUES | st.lists(VALUES)))
def test_round_trip(prompt, answer, tags, extra):
    problem = Problem(id="a", source="s", prompt=prompt, answer=answer, tags=tags, extra=extra)
    assert decode_line(encode_line(problem), Problem) == (problem, [])


def test_kind_comes_first_in_every_row():
    metric = Metric(run="r", step=1, name="loss", value=0.5)
    assert encode_line(metric).startswith(b'{"kind":"metric/1"')


def test_kinds_are_named_after_their_records():
    for name, cls in KINDS.items():
        assert cls.kind() == f"{name}/{cls.record_version}"
    assert Trajectory.kind() == "trajectory/1"
