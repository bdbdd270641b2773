"""``rstar2 train-rl``: GRPO-RoC."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rstar2cli.cli.options import Model
from rstar2cli.cli.stage import Stage, stage
from rstar2cli.rl.config import TrainRlConfig

if TYPE_CHECKING:
    from rstar2cli.records import Problem

Rollouts = Annotated[
    list[str] | None,
    typer.Option(
        "--rollouts", metavar="DIR", help="Train on these trajectories instead of generating.", show_default=False
    ),
]
OffPolicy = Annotated[bool, typer.Option("--off-policy", help="With --rollouts: accept those of another policy.")]
Deterministic = Annotated[
    bool, typer.Option("--deterministic", help="Tokens depend on the seed alone; slower (rollout.deterministic).")
]


@stage(
    config=TrainRlConfig,
    examples=[
        "rstar2 train-rl data/train -m runs/sft -o runs/rl --set steps=20 --set prompts_per_step=8",
        "rstar2 train-rl data/train -m runs/sft -o runs/rl --set steps=20 --set prompts_per_step=8 --resume",
        "rstar2 train-rl data/train -m runs/sft -o runs/random --set roc.mode=random",
    ],
    run_directory=True,
)
def main(
    run: Stage[TrainRlConfig],
    model: Model,
    rollouts: Rollouts = None,
    off_policy: OffPolicy = False,
    deterministic: Deterministic = False,
) -> None:
    """Train a model with GRPO-RoC: rollouts, resample on correct, one policy-gradient step, and again.

    IN is problem records. OUT is a run directory with model/, metrics.jsonl, checkpoints/, the trajectories of each
    step in rollouts/ and what was decided about them in selections/; it can be given as -m to the other stages.
    """
    from rstar2cli.training.rundir import check_out

    if deterministic:
        run.config = dataclasses.replace(
            run.config, rollout=dataclasses.replace(run.config.rollout, deterministic=True)
        )
    check_out(run.out, stage=run.name, resume=run.resume, overwrite=run.overwrite)
    problems = _problems(run)
    if run.dry_run:
        _plan(run, problems, model, rollouts or [], off_policy=off_policy)
        return
    from rstar2cli.rl.trainer import train_rl

    result = train_rl(
        problems,
        model,
        run.out,
        run.config,
        run.progress,
        seed=run.seed,
        resume=run.resume,
        overwrite=run.overwrite,
        rollouts=rollouts or (),
        off_policy=off_policy,
        lineage=run.lineage(),
        resolved=run.resolved(),
        rejects=() if run.rejects else run.rejected,  # those of --rejects are kept already
    )
    if result.empty:
        run.warn(f"{result.empty} of {result.steps} steps were empty: no group had both right and wrong rollouts")
    run.finish(
        steps=result.steps, updates=result.updates, empty=result.empty, digest=result.policy, metrics=result.metrics
    )


def _problems(run: Stage[TrainRlConfig]) -> list[Problem]:
    """The problems; stops here, before any training, if too many rows were rejected."""
    from rstar2cli.records import Problem

    problems = run.read_unique(Problem)
    run.keep_rejects()
    run.judge_rejects()
    run.require(problems, "problems")
    return problems


def _plan(
    run: Stage[TrainRlConfig], problems: list[Problem], model: str, rollouts: list[str], *, off_policy: bool
) -> None:
    from rstar2cli.dialogue.dialogue import Dialogue
    from rstar2cli.engines.check import check_engine
    from rstar2cli.policy.describe import describe_model
    from rstar2cli.policy.load import load_tokenizer
    from rstar2cli.rl.source import StoredRollouts

    config = run.config
    found: dict[str, Any] = describe_model(model)
    dialogue = Dialogue(load_tokenizer(model), config.rollout.dialogue)
    longest = max(len(dialogue.problem_prompt(problem)) for problem in problems)
    per_step = config.prompts_per_step * config.samples
    training = f"{found['parameters'] * 18 / 2**30:.1f} GiB for weights, gradients and AdamW, activations aside"
    if rollouts:
        stored = StoredRollouts(rollouts, off_policy=off_policy)
        steps = next(step for step in itertools.count(1) if not stored.has(step)) - 1
        made = f"those of {steps} steps in {' '.join(rollouts)}"
        engine = {"memory": training}
    else:
        made = f"{per_step} a step, {config.steps * per_step} in all"
        engine = check_engine(
            config.rollout.engine,
            found,
            longest=longest + config.rollout.max_response,
            rows=per_step,
            deterministic=config.rollout.deterministic,
        )
        engine["memory"] = f"{training}; the engine: {engine['memory']}"
    run.plan(
        model=f"{found['path']} ({found['parameters'] / 1e6:.1f} M parameters, digest {found['digest']})",
        problems=len(problems),
        rollouts=made,
        passes=f"{config.steps * config.prompts_per_step / len(problems):.2f} over the problems",
        tokens=f"at most {longest} + {config.rollout.max_response} a rollout",
        steps=config.steps,
        **engine,
    )
