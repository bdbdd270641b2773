"""What becomes of one trajectory, in every way that it can end."""

from collections.abc import Iterator

import pytest
from scripted import DIALOGUE, ScriptedEngine, call, final, problem

from rstar2cli.records import Trajectory
from rstar2cli.rollout.collector import collect
from rstar2cli.rollout.config import RolloutConfig
from rstar2cli.sandbox.config import SandboxConfig
from rstar2cli.sandbox.local import LocalSandbox


@pytest.fixture(scope="module")
def sandbox() -> Iterator[LocalSandbox]:
    made = LocalSandbox(SandboxConfig(workers=1, wall_s=2.0))
    yield made
    made.close()


def play(sandbox: LocalSandbox, turns: list[str], **config: object) -> Trajectory:
    """The trajectory of a model that writes these turns; the answer to the problem is 7."""
    engine = ScriptedEngine(lambda _, turn: turns[turn])
    made: list[Trajectory] = []
    collect([problem(7)], engine, sandbox, DIALOGUE, RolloutConfig(**config), made.append)  # type: ignore[arg-type]
    assert len(made) == 1
    _check_bookkeeping(made[0])
    return made[0]


def _check_bookkeeping(trajectory: Trajectory) -> None:
    assert len(trajectory.response_ids) == len(trajectory.mask) == len(trajectory.logprobs)
    assert all(
        (logprob is not None) == written for logprob, written in zip(trajectory.logprobs, trajectory.mask, strict=True)
    )
    assert sum(trajectory.mask) == sum(turn.n_tokens for turn in trajectory.turns)
    written = [token for token, mine in zip(trajectory.response_ids, trajectory.mask, strict=True) if mine]
    start = 0
    for turn in trajectory.turns:
        assert DIALOGUE.turn_text(written[start : start + turn.n_tokens]) == turn.text
        start += turn.n_tokens
    assert trajectory.n_turns == len(trajectory.turns)


def test_an_answer_at_once(sandbox: LocalSandbox) -> None:
    made = play(sandbox, [final(7)])
    assert (made.finish, made.verdict, made.reward, made.answer) == ("stop", "correct", 1.0, "7")
    assert (made.n_turns, made.n_tool_calls, made.n_answers) == (1, 0, 1)
    assert (made.p_err, made.p_format) == (0.5, 0.0)
    assert all(made.mask)
    assert made.prompt_ids == DIALOGUE.problem_prompt(problem(7))


def test_calls_are_answered_in_order_in_one_message(sandbox: LocalSandbox) -> None:
    made = play(sandbox, ["two" + call("print(input())", "first") + call("1/0") + call("print('third')"), final(7)])
    assert [c.outcome for c in made.turns[0].calls] == ["ok", "error", "ok"]
    assert (made.n_turns, made.n_tool_calls, made.n_tool_errors) == (2, 3, 1)
    assert made.p_err == pytest.approx(1 / 3)
    between = DIALOGUE.decode([t for t, mine in zip(made.response_ids, made.mask, strict=True) if not mine])
    assert between.count("<tool_response>") == 3
    assert between.index("first") < between.index("ZeroDivisionError") < between.index("third")
    assert between.endswith("<|im_start|>assistant\n<reason>")


def test_a_call_that_is_no_json_is_answered_and_counts(sandbox: LocalSandbox) -> None:
    made = play(
        sandbox, ["<tool_call>{oops}</tool_call>", '<tool_call>{"name": "x", "arguments": {}}</tool_call>', final(7)]
    )
    assert [turn.calls[0].outcome for turn in made.turns[:2]] == ["bad_json", "unknown_tool"]
    assert made.turns[0].calls[0].output is not None
    assert made.turns[0].calls[0].output.startswith("Failed to decode tool call: ")
    assert (made.n_tool_calls, made.n_tool_errors, made.reward) == (2, 2, 1.0)


def test_the_word_error_in_an_output_is_no_error(sandbox: LocalSandbox) -> None:
    assert play(sandbox, [call("print('relative error 0.1')"), final(7)]).n_tool_errors == 0


def test_calls_at_the_turn_limit_are_not_run(sandbox: LocalSandbox) -> None:
    made = play(sandbox, [call("print(1)"), call("print(2)")], max_turns=2)
    assert made.finish == "turn_limit"
    assert [turn.calls[0].outcome for turn in made.turns] == ["ok", None]
    assert made.turns[1].calls[0].output is None
    assert (made.n_tool_calls, made.reward) == (1, 0.0)
    assert made.mask[-1]


def test_an_answer_beside_a_call_at_the_limit_still_counts(sandbox: LocalSandbox) -> None:
    assert play(sandbox, [final(7) + call("print(1)")], max_turns=1).reward == 1.0


def test_an_unfinished_call_ends_it_and_is_recorded(sandbox: LocalSandbox) -> None:
    made = play(sandbox, ["<tool_call>\n{"])
    assert made.finish == "stop"
    assert [(c.name, c.outcome) for c in made.turns[0].calls] == [(None, None)]
    assert made.n_tool_calls == 0


def test_a_response_that_would_not_fit_is_not_appended(sandbox: LocalSandbox) -> None:
    first = call("print('x' * 300)")
    made = play(sandbox, [first], max_response=len(first) + 200)
    assert made.finish == "tool_overflow"
    assert all(made.mask)
    assert made.turns[0].calls[0].outcome is None
    assert (made.n_tool_calls, made.p_err, made.reward) == (0, 0.5, 0.0)


def test_the_token_limit_counts_the_tool_text_too(sandbox: LocalSandbox) -> None:
    made = play(sandbox, [call("print(1)"), "y" * 500], max_response=400)
    assert made.finish == "length"
    assert len(made.response_ids) == 400
    assert made.turns[1].finish == "length"


def test_a_turn_can_have_a_limit_of_its_own(sandbox: LocalSandbox) -> None:
    made = play(sandbox, ["y" * 500], max_response=400, max_turn_tokens=50)
    assert (made.finish, len(made.response_ids)) == ("length", 50)


def test_only_the_last_turn_is_graded_and_all_answers_are_counted(sandbox: LocalSandbox) -> None:
    made = play(sandbox, [final(7) + call("print('<ans' + 'wer>1</answer>')"), final(8)])
    assert (made.verdict, made.answer) == ("wrong", "8")
    assert made.n_answers == 2, "tool text never counts"
    assert made.p_format == 0.5


def test_a_call_that_meets_the_clock_is_not_deterministic(sandbox: LocalSandbox) -> None:
    made = play(sandbox, [call("import time; time.sleep(60)"), final(7)], deterministic=True, wave=2)
    assert made.turns[0].calls[0].outcome == "timeout"
    assert not made.deterministic
    assert play(sandbox, [call("print(1)"), final(7)], deterministic=True, wave=2).deterministic


def test_a_gold_that_can_not_be_read_is_undecided(sandbox: LocalSandbox) -> None:
    engine = ScriptedEngine(lambda _, __: final(7))
    made: list[Trajectory] = []
    collect([problem(7, answer="seven?")], engine, sandbox, DIALOGUE, RolloutConfig(), made.append)
    assert (made[0].verdict, made[0].reward) == ("undecided", None)
