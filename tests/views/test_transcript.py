"""Transcripts of hand-made records, on a terminal, in a pipe and as HTML."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest

from rstar2cli.records import CallRecord, Conversation, Message, Problem, Selection, ToolCall, Trajectory, Turn
from rstar2cli.views.page import page
from rstar2cli.views.terminal import draw
from rstar2cli.views.transcript import Block, split_turn, token_transcript, transcript

Make = Callable[..., Trajectory]
EVIL = "\x1b]52;c;cm0=\x07[red]x[/red]<script>alert(1)</script>\x9b2J\u202e"


def letters(ids: Sequence[int]) -> str:
    return bytes(ids).decode(errors="replace")


def test_turn_splits_into_reasoning_calls_and_answer() -> None:
    pieces = split_turn("a</reason>b<tool_call>{}</tool_call>c<answer>1</answer>d<|im_end|>")
    assert pieces == [("reason", "a"), ("text", "b"), ("call", "{}"), ("text", "c"), ("answer", "1"), ("text", "d")]


def test_unclosed_reasoning_ends_at_the_call() -> None:
    assert split_turn("hm <tool_call>{}") == [("reason", "hm "), ("call", "{}")]
    assert split_turn("never ends") == [("reason", "never ends")]


def test_trajectory_reads_as_a_conversation(make_trajectory: Make) -> None:
    text = draw(transcript(make_trajectory(), decode=letters))
    order = ["hi", "turn 1", "think", "print(6*7)", '{"input": "5"}', "tool: ok · 0.25 s", "stdout: 42", "turn 2"]
    places = [text.index(part) for part in [*order, "\\boxed{42}", "verdict", "correct", "reward"]]
    assert places == sorted(places)


def test_selection_is_shown(make_trajectory: Make) -> None:
    chosen = Selection(id="r:0:0/0", group="r:0:0", kept=False, advantage=None, why="not_drawn")
    text = draw(transcript(make_trajectory(p_err=0.25), selection=chosen))
    assert "not_drawn" in text and re.search(r"p_total +0\.25", text)


def test_tokens_mark_what_was_trained_on(make_trajectory: Make) -> None:
    text = draw(token_transcript(make_trajectory(), letters))
    assert "⟦ab⟧c⟦de⟧" in text and "5 tokens, 4 trained on" in text


def test_tokens_of_one_character_stay_together(make_trajectory: Make) -> None:
    euro = list("€".encode())
    record = make_trajectory(response_ids=[*euro, 97], mask=[True] * 4, logprobs=[-1.0] * 4)
    assert "⟦€a⟧" in draw(token_transcript(record, letters))


def test_conversation_shows_training_and_failures() -> None:
    messages = [
        Message(role="user", content="How much?"),
        Message(role="assistant", content="I run it.</reason>", tool_calls=[ToolCall(name="t", arguments="{bad")]),
        Message(role="tool", content="Failed to decode tool call: x"),
        Message(role="assistant", content="ok</reason><answer>1</answer>", train=False),
    ]
    blocks = transcript(Conversation(id="c", source="s", messages=messages))
    text = draw(blocks)
    assert "{bad" in text and "(not trained on)" in text and "How much?" in text
    assert [block.failed for block in blocks if block.kind == "output"] == [True]


def test_other_records_show_their_fields() -> None:
    text = draw(transcript(Problem(id="p", source="s", prompt="Why?", answer="3")))
    assert re.search(r"prompt +Why\?", text) and "problem/1 p" in text


@pytest.fixture
def hostile(make_trajectory: Make) -> list[list[Block]]:
    call = CallRecord(name=EVIL, arguments=EVIL, outcome="error", output=EVIL)
    code = CallRecord(name="t", arguments='{"code": "print(\'</script><script>\\u001b\')"}', outcome="ok", output=EVIL)
    turn = Turn(text=f"{EVIL}</reason><tool_call>x</tool_call>{EVIL}", policy="p", finish="stop", n_tokens=1,
                calls=[call, code])  # fmt: skip
    record = make_trajectory(turns=[turn], answer=EVIL, reason=EVIL, problem_id=EVIL)
    both = [transcript(record, decode=lambda _: EVIL), token_transcript(record, lambda _: EVIL)]
    talk = Conversation(id=EVIL, source=EVIL, tools=EVIL, messages=[Message(role="user", content=EVIL)])
    both.append(transcript(talk))
    return both


def test_hostile_text_reaches_no_terminal(hostile: list[list[Block]]) -> None:
    for blocks in hostile:
        assert not set(draw(blocks)) & set("\x1b\x07\x9b\u202e")
        colored = draw(blocks, width=100, color=True)
        ours = re.sub(r"\x1b\[[0-9;]*m", "", colored)
        assert not set(ours) & set("\x1b\x07\x9b\u202e") and "[red]" in ours


def test_page_holds_no_script_and_no_reference(hostile: list[list[Block]]) -> None:
    for blocks in hostile:
        text = page(blocks, title=EVIL)
        assert "<script" not in text and "</script" not in text and not set(text) & set("\x1b\x07\x9b\u202e")
        assert not re.search(r"(src|href)=", text) and "http" not in text.replace("http-equiv", "")


def test_code_is_highlighted_in_the_page(make_trajectory: Make) -> None:
    assert re.search(r'<span style="color[^>]+">print</span>', page(transcript(make_trajectory()), title="t"))
