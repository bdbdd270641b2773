"""``rstar2 eval``: measure a model on problems."""

from __future__ import annotations

import dataclasses
import tempfile
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rstar2cli.cli.options import Model
from rstar2cli.cli.say import say
from rstar2cli.cli.stage import Stage, stage
from rstar2cli.evals.config import EvalConfig

if TYPE_CHECKING:
    from rstar2cli.evals.run import EvalResult
    from rstar2cli.records import Problem, Score
    from rstar2cli.shards.writer import Writer

Samples = Annotated[
    int | None,
    typer.Option("--samples", "-n", min=1, help="Samples of each problem (rollout.samples).", show_default=False),
]
Deterministic = Annotated[
    bool, typer.Option("--deterministic", help="Tokens depend on the seed alone; slower (rollout.deterministic).")
]


@stage(
    config=EvalConfig,
    examples=[
        "rstar2 eval runs/smoke/heldout -m runs/smoke/rl -o runs/smoke/eval-rl -n 1",
        "rstar2 eval math500:math500.jsonl -m MODEL -o out --set rollout.engine.name=vllm",
        "rstar2 eval problems.jsonl -m MODEL -o out --set rollout.sampling.temperature=0 --json",
    ],
)
def main(run: Stage[EvalConfig], model: Model, samples: Samples = None, deterministic: Deterministic = False) -> None:
    """Measure a model on problems: pass@1 with its interval, tool errors, length, turns.

    IN is problem records, or NAME:FILE for a public benchmark: aime24, aime25, gsm8k, hmmt25, math500, with the
    columns they are published with (NAME: alone loads it from the hub).
    OUT gets one score a sample, OUT/trajectories what the model did, OUT/result.json the figures.
    Undecided samples (our failures) count as not correct and are shown beside the score.
    """
    from rstar2cli.policy.describe import check_model
    from rstar2cli.policy.digest import checkpoint_digest
    from rstar2cli.policy.load import resolve_model
    from rstar2cli.records import Score

    given: dict[str, Any] = {"samples": samples, "deterministic": deterministic or None}
    rollout = dataclasses.replace(
        run.config.rollout, **{key: value for key, value in given.items() if value is not None}
    )
    run.config = dataclasses.replace(run.config, rollout=rollout)
    problems = _problems(run)
    run.require(problems, "problems")
    run.judge_rejects()
    if run.dry_run:
        _plan(run, problems, model)
        return
    check_model(model)
    digest = checkpoint_digest(resolve_model(model))
    with run.writer(Score, model=digest) as writer:
        result = _evaluate(run, problems, model, digest, writer)
    if not run.quiet:
        say(_line(result))
    run.finish(**result.to_dict())


def _problems(run: Stage[EvalConfig]) -> list[Problem]:
    """All problems, those of benchmarks turned into records first."""
    from rstar2cli.evals.benchmarks.load import is_benchmark, load_benchmark
    from rstar2cli.records import Problem
    from rstar2cli.shards.reader import read_records

    _refuse_unknown([name for name in run.inputs if not is_benchmark(name)])
    if not any(map(is_benchmark, run.inputs)):
        return run.read_unique(Problem)
    problems: list[Problem] = []
    for name in run.inputs:
        if is_benchmark(name):
            problems += load_benchmark(name, run.reject)
        else:
            problems += read_records([name], Problem, strict=run.strict, on_reject=run.reject)
    run.read_rows += len(problems)
    if run.where:
        from rstar2cli.shards.where import Where

        problems = Where(run.where, Problem).records(problems)
    return problems[: run.limit]


def _refuse_unknown(inputs: list[str]) -> None:
    """Say which benchmarks there are if a name looks like one."""
    from pathlib import Path

    from rstar2cli.core.errors import UsageError
    from rstar2cli.evals.benchmarks.load import BENCHMARKS

    for name in inputs:
        key, colon, _ = name.partition(":")
        if colon and key.isidentifier() and not Path(name).exists():
            raise UsageError(f"{name}: no benchmark {key!r}", hint=f"benchmarks: {', '.join(BENCHMARKS)}")


def _plan(run: Stage[EvalConfig], problems: list[Problem], model: str) -> None:
    from rstar2cli.dialogue.dialogue import Dialogue
    from rstar2cli.engines.check import check_engine
    from rstar2cli.policy.describe import describe_model
    from rstar2cli.policy.load import load_tokenizer

    config = run.config.rollout
    found = describe_model(model)
    dialogue = Dialogue(load_tokenizer(model), config.dialogue)
    longest = max(len(dialogue.problem_prompt(problem)) for problem in problems)
    made = len(problems) * config.samples
    run.plan(
        model=f"{found['path']} ({found['parameters'] / 1e6:.1f} M parameters, digest {found['digest']})",
        problems=len(problems),
        trajectories=made,
        most_tokens=made * config.max_response,
        **check_engine(
            config.engine,
            found,
            longest=longest + config.max_response,
            rows=made,
            deterministic=config.deterministic,
        ),
    )


def _evaluate(
    run: Stage[EvalConfig], problems: list[Problem], model: str, digest: str, writer: Writer[Score]
) -> EvalResult:
    from rstar2cli.evals.run import run_eval
    from rstar2cli.shards.writer import is_file_name

    lasting = run.out != "-" and not is_file_name(run.out)
    with tempfile.TemporaryDirectory(prefix="rstar2-eval-") as scratch:
        result = run_eval(
            problems,
            model,
            run.config,
            writer,
            directory=run.out if lasting else scratch,
            lineage=run.lineage(digest),
            resolved=run.resolved(),
            seed=run.seed,
            resume=run.resume and lasting,
            progress=run.progress,
        )
    if result.too_long:
        run.warn(f"{len(result.too_long)} problems have prompts over rollout.max_prompt and count as undecided")
    return result


def _line(result: EvalResult) -> str:
    """The score in one line, for people."""
    figures = result.summary
    more = "" if figures.pass_at_k is None else f", pass@{figures.k} {figures.pass_at_k:.3f}"
    undecided = f", {figures.undecided} undecided" if figures.undecided else ""
    return (
        f"pass@1 {figures.pass_at_1:.3f} (95% interval {figures.low:.3f} to {figures.high:.3f}){more}: "
        f"{figures.problems} problems, {figures.samples} samples{undecided}"
    )
