"""Transcripts of hand-made records, on a terminal, in a pipe and as HTML."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rstar2cli.records import CallRecord, Conversation, Message, Problem, Selection, ToolCall, Trajectory, Turn
from rstar2cli.views.page import page
from rstar2cli.views.terminal import draw
from rstar2cli.views.transcript import Block, split_turn, token_transcript, transcript

EVIL = "\x1b]52;c;cm0=\x07[red]x[/red]<script>alert(1)</script>\x9b2J\u202e"


def make_trajectory(**changes: object) -> Trajectory:
    call = CallRecord(
        name="execute_python_code_with_standard_io",
        arguments='{"code": "print(6*7)\\nprint(1)", "input": "5"}',
        outcome="ok",
        output="Tool call success\nstdout: 42",
        seconds=0.25,
    )
    turns = [
        Turn(
            text='think </reason>\n<tool_call>{"name": "execute_python_code_with_standard_io"}</tool_call><|im_end|>',
            policy="p",
            finish="stop",
            n_tokens=3,
            calls=[call],
        ),
        Turn(text="so </reason> <answer>\\boxed{42}</answer><|im_end|>", policy="p", finish="stop", n_tokens=2),
    ]
    values: dict[str, object] = dict(  # noqa: C408
        id="r:0:0/0", run="r", step=0, slot=0, sample=0, seed=1, problem_id="p1", source="synth:x",
        prompt_ids=[104, 105], response_ids=[97, 98, 99, 100, 101], mask=[True, True, False, True, True],
        logprobs=[-1.0, -1.0, None, -1.0, -1.0], turns=turns, finish="stop", gold="42", answer="42",
        verdict="correct", reason=None, reward=1.0, n_turns=2, n_tool_calls=1, n_tool_errors=0, n_answers=1,
        p_err=0.0, p_format=0.0, deterministic=False,
    )  # fmt: skip
    return Trajectory(**(values | changes))  # type: ignore[arg-type]


def letters(ids: Sequence[int]) -> str:
    return bytes(ids).decode(errors="replace")


def test_turn_splits_into_reasoning_calls_and_answer() -> None:
    pieces = split_turn("a</reason>b<tool_call>{}</tool_call>c<answer>1</answer>d<|im_end|>")
    assert pieces == [("reason", "a"), ("text", "b"), ("call", "{}"), ("text", "c"), ("answer", "1"), ("text", "d")]


def test_unclosed_reasoning_ends_at_the_call() -> None:
    assert split_turn("hm <tool_call>{}") == [("reason", "hm "), ("call", "{}")]
    assert split_turn("never ends") == [("reason", "never ends")]


def test_trajectory_reads_as_a_conversation() -> None:
    text = draw(transcript(make_trajectory(), decode=letters))
    order = ["hi", "turn 1", "think", "print(6*7)", '{"input": "5"}', "tool: ok · 0.25 s", "stdout: 42", "turn 2"]
    places = [text.index(part) for part in [*order, "\\boxed{42}", "verdict", "correct", "reward"]]
    assert places == sorted(places)


def test_selection_is_shown() -> None:
    chosen = Selection(id="r:0:0/0", group="r:0:0", kept=False, advantage=None, why="not_drawn")
    text = draw(transcript(make_trajectory(p_err=0.25), selection=chosen))
    assert "not_drawn" in text and re.search(r"p_total +0\.25", text)


def test_tokens_mark_what_was_trained_on() -> None:
    text = draw(token_transcript(make_trajectory(), letters))
    assert "⟦ab⟧c⟦de⟧" in text and "5 tokens, 4 trained on" in text


def test_tokens_of_one_character_stay_together() -> None:
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


def hostile_blocks() -> list[list[Block]]:
    call = CallRecord(name=EVIL, arguments=EVIL, outcome="error", output=EVIL)
    code = CallRecord(name="t", arguments='{"code": "print(\'</script><script>\\u001b\')"}', outcome="ok", output=EVIL)
    turn = Turn(text=f"{EVIL}</reason><tool_call>x</tool_call>{EVIL}", policy="p", finish="stop", n_tokens=1,
                calls=[call, code])  # fmt: skip
    record = make_trajectory(turns=[turn], answer=EVIL, reason=EVIL, problem_id=EVIL)
    both = [transcript(record, decode=lambda _: EVIL), token_transcript(record, lambda _: EVIL)]
    talk = Conversation(id=EVIL, source=EVIL, tools=EVIL, messages=[Message(role="user", content=EVIL)])
    both.append(transcript(talk))
    return both


def test_hostile_text_reaches_no_terminal() -> None:
    for blocks in hostile_blocks():
        assert not set(draw(blocks)) & set("\x1b\x07\x9b\u202e")
        colored = draw(blocks, width=100, color=True)
        ours = re.sub(r"\x1b\[[0-9;]*m", "", colored)
        assert not set(ours) & set("\x1b\x07\x9b\u202e") and "[red]" in ours


def test_page_holds_no_script_and_no_reference() -> None:
    for blocks in hostile_blocks():
        text = page(blocks, title=EVIL)
        assert "<script" not in text and "</script" not in text and not set(text) & set("\x1b\x07\x9b\u202e")
        assert not re.search(r"(src|href)=", text) and "http" not in text.replace("http-equiv", "")


def test_code_is_highlighted_in_the_page() -> None:
    assert re.search(r'<span style="color[^>]+">print</span>', page(transcript(make_trajectory()), title="t"))
