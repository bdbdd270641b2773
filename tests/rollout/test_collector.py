"""Many trajectories at once: ids and seeds, admission, failures of ours, stopping, waves."""

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future

import pytest
from scripted import DIALOGUE, ScriptedEngine, call, final, problem

from rstar2cli.core import drain
from rstar2cli.core.errors import Stopped
from rstar2cli.core.progress import Progress
from rstar2cli.core.seeds import derive_seed
from rstar2cli.records import Trajectory
from rstar2cli.rollout.collector import Collected, collect
from rstar2cli.rollout.config import RolloutConfig
from rstar2cli.sandbox.config import SandboxConfig
from rstar2cli.sandbox.local import LocalSandbox
from rstar2cli.sandbox.outcome import Outcome


@pytest.fixture(scope="module")
def sandbox() -> Iterator[LocalSandbox]:
    made = LocalSandbox(SandboxConfig(workers=2))
    yield made
    made.close()


def script(prompt: str, turn: int) -> str:
    """Computes the number of the problem with the tool, then answers it; even problems are answered wrongly."""
    number = int(prompt.split("Say ")[1].split(".")[0])
    if turn == 0:
        return call(f"print({number})")
    return final(number if number % 2 else -1)


def run(engine: ScriptedEngine, sandbox: object, n: int = 6, **options: object) -> tuple[list[Trajectory], Collected]:
    made: list[Trajectory] = []
    done = options.pop("done", ())
    config = RolloutConfig(**options)  # type: ignore[arg-type]
    problems = [problem(number) for number in range(n)]
    result = collect(problems, engine, sandbox, DIALOGUE, config, made.append, seed=5, done=done)  # type: ignore[arg-type]
    return made, result


@pytest.mark.parametrize("deterministic", [False, True])
def test_every_sample_is_made_once_with_its_id_and_seed(sandbox: LocalSandbox, deterministic: bool) -> None:
    made, result = run(ScriptedEngine(script), sandbox, samples=3, deterministic=deterministic, wave=4)
    assert Counter(t.id for t in made) == {f"rollout:0:{slot}/{sample}": 1 for slot in range(6) for sample in range(3)}
    for t in made:
        assert t.seed == derive_seed(5, f"rollout:0:{t.slot}", t.sample)
        assert t.problem_id == f"p{t.slot}"
        assert t.reward == t.slot % 2
    assert (result.trajectories, result.correct, result.tool_calls, result.lost) == (18, 9, 18, 0)
    assert result.model_tokens == sum(sum(t.mask) for t in made)


def test_each_turn_draws_from_a_seed_of_its_own(sandbox: LocalSandbox) -> None:
    engine = ScriptedEngine(script)
    run(engine, sandbox, samples=2)
    seeds = [request.seed for request in engine.requests]
    assert len(set(seeds)) == len(seeds) == 24


def test_the_cache_and_the_limit_bound_what_is_under_way(sandbox: LocalSandbox) -> None:
    prompt = len(DIALOGUE.problem_prompt(problem(0)))
    engine = ScriptedEngine(script, capacity_tokens=3 * (prompt + 1000) + 10)
    made, _ = run(engine, sandbox, n=9, max_response=1000)
    assert len(made) == 9
    assert 1 < engine.most_running <= 3
    engine = ScriptedEngine(script)
    run(engine, sandbox, n=9, in_flight=2)
    assert engine.most_running <= 2


def test_no_trajectory_waits_for_anothers_turn(sandbox: LocalSandbox) -> None:
    """Problem 0's only tool call takes long; all others finish their two turns before it."""

    def slow(prompt: str, turn: int) -> str:
        return call("import time; time.sleep(1.0)") if turn == 0 and "Say 0." in prompt else script(prompt, turn)

    made, _ = run(ScriptedEngine(slow), sandbox, n=5)
    assert [t.slot for t in made][-1] == 0


def test_what_is_done_is_not_made_again(sandbox: LocalSandbox) -> None:
    engine = ScriptedEngine(script)
    made, _ = run(engine, sandbox, done={"rollout:0:1/0", "rollout:0:4/0"})
    assert sorted(t.slot for t in made) == [0, 2, 3, 5]
    assert len(engine.requests) == 8


def test_waves_come_in_order_with_fixed_rows_and_finished_waves_are_skipped(sandbox: LocalSandbox) -> None:
    engine = ScriptedEngine(script)
    made, _ = run(engine, sandbox, n=7, deterministic=True, wave=3)
    assert [t.slot for t in made] == list(range(7))
    assert engine.waves == [3] * 6
    again = ScriptedEngine(script)
    rest, _ = run(again, sandbox, n=7, deterministic=True, wave=3, done={f"rollout:0:{slot}/0" for slot in range(4)})
    assert [t.slot for t in rest] == [4, 5, 6], "the begun wave is made again, its written row is not written twice"
    assert again.waves == [3] * 4


class FailingSandbox:
    """Fails on our side a given number of times for each code."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.tries: Counter[str] = Counter()

    def submit(self, code: str, stdin: str = "", *, seed: int = 0) -> Future[Outcome]:
        self.tries[code] += 1
        future: Future[Outcome] = Future()
        failed = self.tries[code] <= self.failures
        future.set_result(Outcome(kind="overloaded", detail="busy") if failed else Outcome(kind="ok", stdout="1\n"))
        return future

    def close(self) -> None:
        """Nothing to stop."""


def test_failures_of_ours_are_retried_and_never_shown() -> None:
    sandbox = FailingSandbox(2)
    made, result = run(ScriptedEngine(script), sandbox, n=2, tool_retries=2)
    assert set(sandbox.tries.values()) == {3}
    assert (result.lost, result.tool_calls, result.tool_errors) == (0, 2, 0)
    assert {t.turns[0].calls[0].outcome for t in made} == {"ok"}


@pytest.mark.parametrize("deterministic", [False, True])
def test_after_the_retries_a_trajectory_is_lost_without_a_reward(deterministic: bool) -> None:
    made, result = run(
        ScriptedEngine(script), FailingSandbox(9), n=2, tool_retries=1, deterministic=deterministic, wave=2
    )
    assert result.lost == 2
    for t in made:
        assert (t.finish, t.verdict, t.reward) == ("lost", "undecided", None)
        assert (t.turns[0].calls[0].outcome, t.turns[0].calls[0].output) == ("overloaded", None)
        assert (t.n_tool_calls, t.n_tool_errors) == (0, 0)
        assert "busy" in t.extra["lost"]
        assert all(t.mask)


def test_the_reward_is_that_of_the_ones_that_have_one() -> None:
    """Two of four call a tool that fails on our side: they are no wrong answers."""
    reports: list[Progress] = []

    def half_call(prompt: str, turn: int) -> str:
        number = int(prompt.split("Say ")[1].split(".")[0])
        return script(prompt, turn) if number < 2 else final(2)

    problems = [problem(number) for number in range(4)]
    config = RolloutConfig(tool_retries=0)
    result = collect(
        problems, ScriptedEngine(half_call), FailingSandbox(9), DIALOGUE, config, lambda _: None, reports.append
    )
    assert (result.trajectories, result.rewarded, result.correct, result.lost) == (4, 2, 1, 2)
    assert result.reward == reports[-1].info["reward"] == 0.5
    assert Collected().reward is None


def test_too_many_lost_stop_the_run_after_they_are_written() -> None:
    made: list[Trajectory] = []
    problems = [problem(number) for number in range(60)]
    config = RolloutConfig(tool_retries=0)
    with pytest.raises(Stopped, match="lost"):
        collect(problems, ScriptedEngine(script), FailingSandbox(9), DIALOGUE, config, made.append)
    assert 20 <= len(made) < 60


def test_a_stop_request_ends_it_at_once(sandbox: LocalSandbox) -> None:
    made: list[Trajectory] = []

    def take(trajectory: Trajectory) -> None:
        made.append(trajectory)
        drain.request("SIGTERM")

    try:
        with pytest.raises(Stopped, match="SIGTERM"):
            collect(
                [problem(n) for n in range(30)],
                ScriptedEngine(script),
                sandbox,
                DIALOGUE,
                RolloutConfig(in_flight=2),
                take,
            )
    finally:
        drain.reset()
    assert 1 <= len(made) < 30


def test_an_error_of_the_engine_ends_it(sandbox: LocalSandbox) -> None:
    def broken(prompt: str, turn: int) -> str:
        raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError, match="out of memory"):
        run(ScriptedEngine(broken), sandbox)


def test_prompts_that_are_too_long_are_named_not_made(sandbox: LocalSandbox) -> None:
    made: list[Trajectory] = []
    problems = [problem(1), problem(2, prompt="Say 2." + "x" * 5000)]
    result = collect(problems, ScriptedEngine(script), sandbox, DIALOGUE, RolloutConfig(), made.append)
    assert [t.problem_id for t in made] == ["p1"]
    assert result.too_long == ["p2"]


def test_progress_counts_up_to_the_total(sandbox: LocalSandbox) -> None:
    reports: list[Progress] = []
    collect(
        [problem(n) for n in range(4)],
        ScriptedEngine(script),
        sandbox,
        DIALOGUE,
        RolloutConfig(),
        lambda _: None,
        reports.append,
    )
    assert [(r.done, r.total) for r in reports] == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_nothing_is_left_running(sandbox: LocalSandbox) -> None:
    run(ScriptedEngine(script), sandbox)
    assert not [t for t in threading.enumerate() if isinstance(t, threading.Timer)]
