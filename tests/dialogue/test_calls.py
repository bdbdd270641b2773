from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rstar2cli.dialogue.calls import format_call, parse_calls, unfinished_call
from rstar2cli.dialogue.tools import PYTHON_TOOL, CallProblem, check_call


def test_calls_come_in_order_with_their_arguments_as_written() -> None:
    one = '<tool_call>{"name": "f", "arguments": { "x":1 }}</tool_call>'
    other = '<tool_call>\n{"arguments": {}, "name": "g"}\n</tool_call>'
    text = f"a{one}b{other}"
    first, second = parse_calls(text)
    assert (first.name, first.arguments, first.arguments_text) == ("f", {"x": 1}, '{ "x":1 }')
    assert (second.name, second.arguments, second.error) == ("g", {}, None)


def test_a_bad_call_keeps_its_place_and_has_the_parsers_message() -> None:
    good = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    bad = '<tool_call>{"name": "f", arguments}</tool_call>'
    calls = parse_calls(good + bad + good)
    assert [call.error is None for call in calls] == [True, False, True]
    assert calls[1].error == "Expecting property name enclosed in double quotes: line 1 column 15 (char 14)"
    assert calls[1].arguments_text == '{"name": "f", arguments}'


@pytest.mark.parametrize(
    "body, message",
    [
        ("", "Expecting value"),
        ("[1]", "JSON object"),
        ('{"arguments": {}}', 'missing "name"'),
        ('{"name": 3}', "must be a string"),
        ('{"name": "f", "arguments": "{}"}', "must be an object"),
        ("[" * 100_000, "nested too deeply"),
        ("1" * 5000, "Exceeds the limit"),
    ],
)
def test_malformed_calls(body: str, message: str) -> None:
    (call,) = parse_calls(f"<tool_call>{body}</tool_call>")
    assert call.name is None and call.error is not None and message in call.error


def test_an_unclosed_call_is_not_a_call() -> None:
    text = '<tool_call>{"name": "f", "arguments": {}}</tool_call> then <tool_call>{"name": "g"'
    assert len(parse_calls(text)) == 1
    assert unfinished_call(text) == '{"name": "g"'
    assert unfinished_call("none") is None


@given(
    name=st.text(max_size=8),
    arguments=st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=10) | st.none(), max_size=4),
    indent=st.none() | st.integers(0, 2),
)
def test_format_and_parse_are_inverse(name: str, arguments: dict[str, object], indent: int | None) -> None:
    written = json.dumps(arguments, indent=indent)
    if "</tool_call>" in written or "</tool_call>" in name:
        return
    (call,) = parse_calls(format_call(name, written))
    assert (call.name, call.arguments, call.arguments_text) == (name, arguments, written)


def test_the_last_of_two_equal_keys_counts() -> None:
    (call,) = parse_calls('<tool_call>{"name": "f", "arguments": {"a": 1}, "arguments": {"b": 2}}</tool_call>')
    assert call.arguments == {"b": 2} and call.arguments_text == '{"b": 2}'


def test_arguments_are_checked() -> None:
    call = check_call(PYTHON_TOOL, {"code": "print(1)", "input": ""})
    assert (call.code, call.input) == ("print(1)", "")


@pytest.mark.parametrize(
    "name, arguments, outcome, message",
    [
        ("x", {}, "unknown_tool", f'unknown tool "x", known: {PYTHON_TOOL}'),
        (PYTHON_TOOL, {"input": ""}, "bad_arguments", 'missing argument "code"'),
        (PYTHON_TOOL, {}, "bad_arguments", 'missing argument "code"; missing argument "input"'),
        (PYTHON_TOOL, {"code": 1, "input": None}, "bad_arguments", '"code" must be a string, got a number'),
        (PYTHON_TOOL, {"code": "", "input": "", "t": 1}, "bad_arguments", 'unknown argument "t"'),
    ],
)
def test_bad_calls_say_why(name: str, arguments: dict[str, object], outcome: str, message: str) -> None:
    with pytest.raises(CallProblem) as caught:
        check_call(name, arguments)
    assert caught.value.outcome == outcome and message in caught.value.message
