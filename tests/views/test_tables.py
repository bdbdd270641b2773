"""Rows as text, and nothing that a terminal or a page would act on."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rstar2cli.core.errors import UsageError
from rstar2cli.views import escape
from rstar2cli.views.tables import FORMATS, render

ROWS = [
    {"name": "a", "score": 0.123456789, "n": 3},
    {"name": "long " * 40, "score": None, "n": 12, "more": {"x": [1, 2]}},
]


def test_piped_table_is_never_cut() -> None:
    text = render(ROWS, "table", width=None)
    assert ("long " * 40).strip() in text
    assert "0.123457" in text and '{"x": [1, 2]}' in text


def test_table_fits_the_terminal() -> None:
    lines = render(ROWS, "table", width=60).splitlines()
    assert max(map(len, lines)) <= 60
    assert any("…" in line for line in lines)


def test_numbers_align_right() -> None:
    lines = render([{"n": 1}, {"n": 100}], "table", width=None).splitlines()
    assert lines[2:] == ["  1", "100"]


def test_many_columns_stand_upright_on_a_narrow_terminal() -> None:
    row = {f"column_{i}": "x" * 30 for i in range(20)}
    lines = render([row], "table", width=80).splitlines()
    assert len(lines) == 20 and max(map(len, lines)) <= 80


def test_wide_characters_count_twice() -> None:
    lines = render([{"t": "漢字漢字漢字漢字漢字", "u": "b"}], "table", width=14).splitlines()
    assert lines[2].endswith("b") and "…" in lines[2]


def test_csv_and_json_carry_values_in_full() -> None:
    read = list(csv.DictReader(io.StringIO(render(ROWS, "csv", width=None))))
    assert float(read[0]["score"]) == 0.123456789 and read[1]["score"] == ""
    assert json.loads(render(ROWS, "json")) == ROWS
    assert [json.loads(line) for line in render(ROWS, "jsonl").splitlines()] == ROWS


def test_nan_becomes_null_in_json() -> None:
    assert json.loads(render([{"v": float("nan")}], "jsonl")) == {"v": None}


def test_no_rows() -> None:
    assert [render([], name) for name in FORMATS] == ["", "", "[]\n", "", ""]


def test_unknown_format_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="yaml"):
        render(ROWS, "yaml")


HOSTILE = "\x1b]52;c;cm0gLXJm\x07 \x9b31m [bold]x[/bold] \u202e <script>alert(1)</script> | \r"


@pytest.mark.parametrize("name", FORMATS)
def test_hostile_text_reaches_no_terminal(name: str) -> None:
    text = render([{HOSTILE: HOSTILE}], name, width=200)
    assert not set(text) & set("\x1b\x07\x9b\r\u202e")


def test_hostile_text_reaches_no_page() -> None:
    assert "<script" not in render([{HOSTILE: HOSTILE}], "md")
    assert "<" not in escape.html(HOSTILE)


@given(st.text())
def test_escaped_text_has_no_control_characters(text: str) -> None:
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in escape.one_line(text))
    assert escape.plain("plain" + escape.plain(text)) == "plain" + escape.plain(text)


@given(st.dictionaries(st.text(), st.text()))
def test_json_means_the_same_after_escaping(row: dict[str, str]) -> None:
    assert json.loads(render([row], "json")) == [row]
