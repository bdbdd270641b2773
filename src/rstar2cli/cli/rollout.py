"""``rstar2 rollout``: a model solves problems with the Python tool, and every trajectory is graded."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rstar2cli.cli import options
from rstar2cli.cli.stage import Stage, stage
from rstar2cli.rollout.config import RolloutConfig

if TYPE_CHECKING:
    from rstar2cli.dialogue.dialogue import Dialogue
    from rstar2cli.records import Problem, Trajectory
    from rstar2cli.rollout.collector import Collected
    from rstar2cli.shards.writer import Writer

Samples = Annotated[
    int | None,
    typer.Option("--samples", "-n", min=1, help="Trajectories of each problem (samples).", show_default=False),
]
Step = Annotated[
    int | None,
    typer.Option("--step", min=0, help="Take the problems of this training step (step).", show_default=False),
]
Deterministic = Annotated[
    bool, typer.Option("--deterministic", help="Tokens depend on the seed alone; slower (deterministic).")
]


@stage(
    config=RolloutConfig,
    examples=[
        "rstar2 rollout data/train -m runs/sft -n 16 -o runs/rollouts",
        "rstar2 curate synth: --limit 8 -o - | rstar2 rollout - -m runs/sft -o - | rstar2 stats -",
        "rstar2 rollout data/train -m runs/sft --step 3 --set problems_per_step=8 -n 16 -o step3 --deterministic",
    ],
)
def main(
    run: Stage[RolloutConfig],
    model: options.Model,
    samples: Samples = None,
    step: Step = None,
    deterministic: Deterministic = False,
) -> None:
    """Let a model solve problems with the Python tool.

    IN is problem records. Each trajectory is a multi-turn conversation: the model writes, its tool calls are run in
    the sandbox, the results go back, until it answers. The output keeps the exact tokens, which of them the model
    wrote, their log-probs, every call with its outcome, and the reward.
    """
    given: dict[str, Any] = {"samples": samples, "step": step, "deterministic": deterministic or None}
    run.config = dataclasses.replace(run.config, **{key: value for key, value in given.items() if value is not None})
    problems = _problems(run)
    if run.dry_run:
        _plan(run, problems, model)
        return
    _rollout(run, problems, model)


def _problems(run: Stage[RolloutConfig]) -> list[Problem]:
    from rstar2cli.records import Problem

    problems = run.read_unique(Problem)
    run.require(problems, "problems")
    run.judge_rejects()
    return problems


def _plan(run: Stage[RolloutConfig], problems: list[Problem], model: str) -> None:
    from rstar2cli.dialogue.dialogue import Dialogue
    from rstar2cli.engines.check import check_engine
    from rstar2cli.policy.describe import describe_model
    from rstar2cli.policy.load import load_tokenizer
    from rstar2cli.rollout.jobs import make_jobs

    found = describe_model(model)
    jobs = make_jobs(problems, run.config, run.seed)
    dialogue = Dialogue(load_tokenizer(model), run.config.dialogue)
    longest = max((len(dialogue.problem_prompt(problem)) for problem in problems), default=0)
    run.plan(
        inputs=run.inputs,
        out=run.out,
        model=f"{found['path']} ({found['parameters'] / 1e6:.1f} M parameters, digest {found['digest']})",
        problems=len(problems),
        trajectories=len(jobs),
        longest_prompt=longest,
        tokens_per_trajectory=longest + run.config.max_response,
        **check_engine(
            run.config.engine,
            found,
            longest=longest + run.config.max_response,
            rows=len(jobs),
            deterministic=run.config.deterministic,
        ),
    )


def _rollout(run: Stage[RolloutConfig], problems: list[Problem], model: str) -> None:
    from rstar2cli.dialogue.dialogue import Dialogue
    from rstar2cli.policy.describe import check_model
    from rstar2cli.policy.digest import checkpoint_digest
    from rstar2cli.policy.load import load_tokenizer, resolve_model
    from rstar2cli.records import Trajectory
    from rstar2cli.rollout.collector import Collected

    check_model(model)
    path = resolve_model(model)
    dialogue = Dialogue(load_tokenizer(path), run.config.dialogue)
    digest = checkpoint_digest(path)
    with run.writer(Trajectory, model=digest, rows_per_part=run.config.save_every) as writer:
        result = Collected()
        if not writer.complete:
            result = _collect(run, problems, dialogue, str(path), writer)
        rows = writer.rows
    run.finish(rows=rows, **_figures(result))


def _collect(
    run: Stage[RolloutConfig], problems: list[Problem], dialogue: Dialogue, model: str, writer: Writer[Trajectory]
) -> Collected:
    from rstar2cli.engines.build import build_engine
    from rstar2cli.rollout.collector import collect
    from rstar2cli.sandbox.build import build_sandbox

    watch = _Watch(writer)
    sandbox = build_sandbox(run.config.sandbox)
    try:
        engine = build_engine(run.config.engine, model)
        try:
            result = collect(
                problems,
                engine,
                sandbox,
                dialogue,
                run.config,
                watch.take,
                run.progress,
                seed=run.seed,
                done=writer.existing("id"),
                on_wave=writer.end_part,
            )
        finally:
            engine.close()
    finally:
        sandbox.close()
    _warn(run, result, watch)
    _reject_long(run, result)
    return result


class _Watch:
    """Writes trajectories and remembers whether any made a complete tool call."""

    def __init__(self, writer: Writer[Trajectory]) -> None:
        self._writer = writer
        self.called = False

    def take(self, trajectory: Trajectory) -> None:
        """Write one."""
        self._writer.write(trajectory)
        # An opened call that never ended has no name; so has one that is not valid JSON, which was answered.
        self.called = self.called or any(
            call.name is not None or call.outcome is not None for turn in trajectory.turns for call in turn.calls
        )


def _warn(run: Stage[RolloutConfig], result: Collected, watch: _Watch) -> None:
    if result.trajectories and not watch.called:
        run.warn(
            f"none of {result.trajectories} trajectories made a complete tool call; "
            "a model that was never trained on calls does not make them (rstar2 sft teaches it)"
        )
    if result.lost or result.undecided:
        run.warn(f"{result.lost} trajectories lost and {result.undecided} undecided, of {result.trajectories}")
    if result.clock_dependent:
        run.warn(f"{result.clock_dependent} trajectories had a tool outcome that the clock decided: not reproducible")


def _reject_long(run: Stage[RolloutConfig], result: Collected) -> None:
    for name in result.too_long:
        reason = f"problem {name}: the prompt is over the limit (max_prompt={run.config.max_prompt})"
        run.reject(run.refusal(name, reason), counted=True)


def _figures(result: Collected) -> dict[str, float | None]:
    """Numbers for ``--json``, of what this run made."""
    return {
        "made": result.trajectories,
        "reward": None if result.reward is None else round(result.reward, 4),
        "truncated": result.truncated,
        "lost": result.lost,
        "undecided": result.undecided,
        "tool_calls": result.tool_calls,
        "tool_errors": result.tool_errors,
        "model_tokens": result.model_tokens,
        "seconds": round(result.seconds, 3),
        "tokens_per_s": round(result.model_tokens / result.seconds, 1) if result.seconds else 0.0,
    }
