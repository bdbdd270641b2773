"""Hand-made records."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rstar2cli.records import CallRecord, Trajectory, Turn


@pytest.fixture
def make_trajectory() -> Callable[..., Trajectory]:
    """A function that makes a trajectory of two turns; keywords replace fields."""

    def make(**changes: object) -> Trajectory:
        call = CallRecord(
            name="execute_python_code_with_standard_io",
            arguments='{"code": "print(6*7)\\nprint(1)", "input": "5"}',
            outcome="ok",
            output="Tool call success\nstdout: 42",
            seconds=0.25,
        )
        turns = [
            Turn(
                text='think </reason>\n<tool_call>{"name": "…"}</tool_call><|im_end|>',
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

    return make
