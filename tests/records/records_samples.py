"""One full record of each kind, with every field set to something that is not its default."""

from __future__ import annotations

from rstar2cli.records import (
    CallRecord,
    Conversation,
    Message,
    Metric,
    Problem,
    Record,
    Score,
    Selection,
    ToolCall,
    Trajectory,
    Turn,
)

EXTRA = {"family": "gcd", "params": {"a": 12, "b": [1, None, 2.5]}, "ünïcode ‹": "\u2028"}


def problem(number: int = 0) -> Problem:
    return Problem(
        id=f"p{number}",
        source="synth:gcd",
        prompt=f"Problem {number}?\nSecond line.",
        answer=str(number),
        answer_kind="rational",
        attempts=8,
        solved=number % 9,
        tags=["a", "b"],
        extra={**EXTRA, "number": number},
    )


def conversation(number: int = 0) -> Conversation:
    call = ToolCall(id="c1", name="execute_python_code_with_standard_io", arguments='{"code": "print(1)", "input": ""}')
    return Conversation(
        id=f"c{number}",
        source="s",
        tools='[{"name": "x"}]',
        messages=[
            Message(role="user", content="q"),
            Message(role="assistant", content="r", tool_calls=[call], train=False),
            Message(role="tool", content="1", tool_call_id="c1"),
        ],
        extra=EXTRA,
    )


def trajectory(number: int = 0) -> Trajectory:
    calls = [
        CallRecord(name="python", arguments="{}", outcome="ok", output="1", seconds=0.25 + number),
        CallRecord(name=None, arguments="{", outcome=None, output=None),
    ]
    return Trajectory(
        id=f"r:0:{number}/0",
        run="r",
        step=0,
        slot=number,
        sample=0,
        seed=2**53 - 1,
        problem_id=f"p{number}",
        source="s",
        prompt_ids=[1, 2, 2**31 - 1],
        response_ids=[3, 4, 5],
        mask=[True, False, True],
        logprobs=[-0.1, None, -2.5],
        turns=[Turn(text="a", policy="x@3", finish="stop", n_tokens=2, calls=calls)],
        finish="length",
        gold="1",
        answer=None,
        verdict="wrong",
        reason="no answer",
        reward=float(number % 2),
        n_turns=1,
        n_tool_calls=1,
        n_tool_errors=1,
        n_answers=0,
        p_err=1.0,
        p_format=1.0,
        deterministic=True,
        timings={"total": 1.5},
        extra=EXTRA,
    )


def samples() -> list[Record]:
    return [
        problem(),
        conversation(),
        trajectory(),
        Selection(id="r:0:0/0", group="r:0:0", kept=True, advantage=-0.5, why="kept", extra=EXTRA),
        Score(
            benchmark="b",
            problem_id="p",
            sample=1,
            metric="correct",
            value=None,
            verdict="undecided",
            detail={"seconds": 1.5, "tokens": 12},
            trajectory_id="r:0:0/1",
            extra=EXTRA,
        ),
        Metric(run="r", step=3, name="loss", value=0.1, extra=EXTRA),
    ]
