from __future__ import annotations

from typing import Any

import pytest

from rstar2cli.dialogue.config import DialogueConfig
from rstar2cli.rollout.tooltext import bad_json_text, cut, outcome_text, refused_text
from rstar2cli.sandbox.outcome import INFRASTRUCTURE, Outcome

LINE = DialogueConfig()
LONG = DialogueConfig(errors="traceback")


@pytest.mark.parametrize(
    "outcome, text",
    [
        ({"kind": "ok"}, "Tool call success"),
        ({"kind": "ok", "stdout": "4\n"}, "Tool call success\nstdout: 4"),
        ({"kind": "ok", "stderr": "w\n"}, "Tool call success\nstderr: w"),
        ({"kind": "ok", "stdout": "4\n", "stderr": "w\n"}, "Tool call success\nstdout: 4\nstderr: w"),
        ({"kind": "ok", "stdout": "\n"}, "Tool call success"),
        (
            {"kind": "error", "stdout": "1\n", "stderr": "w", "error": "E at line 1: m\n  x"},
            "Tool call failure\nreason: error\nstdout: 1\nstderr: w\nE at line 1: m\n  x",
        ),
        ({"kind": "exit", "exit_code": 3}, "Tool call failure\nreason: exit status 3"),
        ({"kind": "signal", "signal": 11}, "Tool call failure\nreason: killed by signal 11"),
        (
            {"kind": "timeout", "limit": "4 s", "stdout": "a"},
            "Tool call failure\nreason: timeout after 4 s\nstdout: a",
        ),
        ({"kind": "cpu", "limit": "4 s"}, "Tool call failure\nreason: cpu limit of 4 s"),
        ({"kind": "memory", "limit": "1 GiB"}, "Tool call failure\nreason: memory limit of 1 GiB"),
        ({"kind": "output_limit", "limit": "8 MiB"}, "Tool call failure\nreason: output limit of 8 MiB"),
    ],
)
def test_the_table(outcome: dict[str, Any], text: str) -> None:
    assert outcome_text(Outcome(**outcome, seconds=1.25), LINE) == text


def test_the_long_form_is_the_traceback() -> None:
    outcome = Outcome(kind="error", error="short", traceback="Traceback\nlong")
    assert outcome_text(outcome, LONG) == "Tool call failure\nreason: error\nstderr: Traceback\nlong"


@pytest.mark.parametrize("kind", sorted(INFRASTRUCTURE))
def test_our_failures_have_no_text(kind: Any) -> None:
    with pytest.raises(ValueError, match="not for the model"):
        outcome_text(Outcome(kind=kind), LINE)


def test_refusals() -> None:
    assert bad_json_text("Expecting value", LINE) == "Failed to decode tool call: Expecting value"
    assert refused_text('unknown tool "x"', LINE) == 'Error when executing tool: unknown tool "x"'


def test_long_output_keeps_status_head_and_tail() -> None:
    outcome = Outcome(kind="error", stdout="a" * 5000, error="E at line 9: end")
    text = outcome_text(outcome, DialogueConfig(output_chars=100))
    cut_away = len("stdout: " + "a" * 5000 + "\nstderr: E at line 9: end") - 100
    assert text.startswith("Tool call failure\nreason: error\nstdout: aaa")
    assert text.endswith("E at line 9: end") and f"…[{cut_away} characters cut]…" in text


@pytest.mark.parametrize("limit", [1, 2, 3, 10])
def test_cut_keeps_exactly_the_limit(limit: int) -> None:
    text = "".join(chr(65 + at % 26) for at in range(40))
    head, _, rest = cut(text, limit).partition("…[")
    middle, _, tail = rest.partition(" characters cut]…")
    assert text.startswith(head) and text.endswith(tail) and len(head) + len(tail) == limit
    assert int(middle) == 40 - limit
    assert cut(text, 40) == text
