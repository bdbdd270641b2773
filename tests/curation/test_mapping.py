"""Foreign rows: columns, answer rules, and the reason for every refusal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rstar2cli.curation.config import FieldsConfig
from rstar2cli.curation.mapping import integer, last_boxed, to_problem
from rstar2cli.curation.sources.rows import Row
from rstar2cli.records.codec import RowError


def problem(values, answer_kind="integer", **fields):
    return to_problem(Row("raw/data.jsonl", 7, values), FieldsConfig(**fields), answer_kind=answer_kind)


@pytest.mark.parametrize(
    ("values", "answer"),
    [
        ({"question": "q", "answer": "42"}, "42"),
        ({"problem": "q", "final_answer": 42}, "42"),
        ({"prompt": "q", "expected_answer": " 1,234 "}, "1234"),
        ({"question": "q", "answer": "6 * 7 = <<6*7=42>>42\n#### 42"}, "42"),
        ({"problem": "q", "solution": "so \\boxed{1} or rather \\boxed{-3}"}, "-3"),
        ({"problem": "q", "answer": "033"}, "33"),
        ({"problem": "q", "answer": "$5$"}, "5"),
        ({"problem": "q", "answer": 0}, "0"),
        ({"problem": "q", "answer": None, "solution": "#### 8"}, "8"),
        ({"prompt": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}], "answer": "1"}, "1"),
    ],
)
def test_columns_and_answers_are_found(values, answer):
    made = problem(values)
    assert (made.prompt, made.answer, made.answer_kind) == ("q", answer, "integer")
    assert (made.id, made.source) == ("data/7", "data")
    assert made.extra == {"file": "raw/data.jsonl", "line": 7}


def test_named_columns_reach_into_objects():
    values = {"text": "q", "answer": "wrong", "reward_model": {"ground_truth": "9"}, "uid": "x1"}
    made = problem(values, prompt="text", answer="reward_model.ground_truth", id="uid")
    assert (made.id, made.prompt, made.answer) == ("data/x1", "q", "9")


@pytest.mark.parametrize(
    ("values", "fields", "reason"),
    [
        ({"question": "q", "answer": "1/2"}, {}, "the answer is no integer: '1/2'"),
        ({"question": "q", "answer": 1.5}, {}, "the answer is no integer: '1.5'"),
        ({"question": "q", "answer": True}, {}, "the answer is bool"),
        ({"question": "q", "answer": ["1"]}, {}, "the answer is list"),
        ({"question": "q", "answer": "12,34"}, {}, "no integer"),
        ({"question": "q", "answer": ""}, {}, "no integer"),
        ({"question": "q", "answer": "9" * 101}, {}, "no integer"),
        ({"question": " ", "answer": "1"}, {}, "the prompt is empty"),
        ({"answer": "1"}, {}, "no column for the prompt"),
        ({"question": "q"}, {}, "no column for the answer"),
        ({"question": "q", "answer": "1"}, {"answer": "gold"}, "no column 'gold' .fields.answer."),
        ({"question": "q", "answer": "1"}, {"answer_rule": "hashes"}, "no ####"),
        ({"question": "q", "answer": "1"}, {"answer_rule": "boxed"}, "no .boxed"),
        ({"prompt": [{"role": "user", "content": "a"}] * 2, "answer": "1"}, {}, "2 user messages"),
        ({"kind": "trajectory/1"}, {}, "expected a problem, got a trajectory"),
        ({"kind": "problem/1", "id": "a", "source": "s", "prompt": "q", "answer": "x"}, {}, "no integer"),
        ({"kind": "problem/1", "id": "a", "source": "s", "prompt": 3, "answer": "1"}, {}, "expected string, got 3"),
    ],
)
def test_every_refusal_has_its_reason(values, fields, reason):
    with pytest.raises(RowError, match=reason):
        problem(values, **fields)


def test_any_keeps_other_answers():
    made = problem({"question": "q", "answer": "1/2"}, answer_kind="any")
    assert (made.answer, made.answer_kind) == ("1/2", "rational")
    assert problem({"question": "q", "answer": "12"}, answer_kind="any").answer_kind == "integer"


def test_our_own_records_pass_unchanged():
    values = {"kind": "problem/1", "id": "a", "source": "s", "prompt": "q", "answer": "7", "extra": {"x": 1}}
    made = problem(values)
    assert (made.id, made.answer, made.extra) == ("a", "7", {"x": 1})


@given(st.integers(-(10**30), 10**30))
def test_every_way_to_write_an_integer_is_the_same(value):
    assert integer(str(value)) == integer(f" {value:,} ") == integer(f"${value}$") == str(value)


@pytest.mark.parametrize(
    ("text", "found"),
    [("\\boxed{a{b}c}", "a{b}c"), ("\\boxed{1} \\boxed {2}", "2"), ("\\boxed{1", None), ("none", None)],
)
def test_last_boxed_balances_braces(text, found):
    assert last_boxed(text) == found
