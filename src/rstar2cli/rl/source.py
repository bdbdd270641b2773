"""Where the rollouts of a step come from: an engine of this process, or trajectories made elsewhere."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Collection, Sequence
from typing import Any, Protocol

from rstar2cli.core.allocator import give_back
from rstar2cli.core.errors import DataError, InputMissing
from rstar2cli.core.progress import Progress, ProgressFn
from rstar2cli.core.seeds import generator
from rstar2cli.dialogue.dialogue import Dialogue
from rstar2cli.engines.base import Engine
from rstar2cli.engines.build import build_engine
from rstar2cli.policy.devices import pick_device, pick_dtype
from rstar2cli.policy.digest import model_digest
from rstar2cli.policy.load import Policy
from rstar2cli.records import Problem, Trajectory
from rstar2cli.rl.config import TrainRlConfig
from rstar2cli.rl.store import StepStore
from rstar2cli.rl.sync import TOLERANCE, sync_weights
from rstar2cli.rollout.collector import collect
from rstar2cli.rollout.config import RolloutConfig
from rstar2cli.rollout.jobs import Job, group_jobs, step_places
from rstar2cli.sandbox.build import build_sandbox
from rstar2cli.sandbox.outcome import Sandbox
from rstar2cli.shards.reader import read_records


class RolloutSource(Protocol):
    """Puts the trajectories of a step into the store."""

    def has(self, step: int) -> bool:
        """Whether there are trajectories for this step."""
        ...

    def fill(self, store: StepStore, step: int, refill: int, policy: Policy, version: str) -> dict[str, float]:
        """Complete that directory of the store with rollouts of the present ``policy``; figures of how it went."""
        ...

    def close(self) -> None:
        """Free everything."""
        ...


class LiveRollouts:
    """Rollouts by an engine in this process, which starts with the first step that is not on disk."""

    def __init__(
        self,
        problems: Sequence[Problem],
        model: str,
        tokenizer: Any,
        config: TrainRlConfig,
        run: str,
        seed: int,
        progress: ProgressFn,
    ) -> None:
        if not problems:
            raise InputMissing("no problems to train on", hint="check --where and --limit")
        self._problems = problems
        self._model = model
        self._config = config
        self._run = run
        self._seed = seed
        self._progress = progress
        self._dialogue = Dialogue(tokenizer, config.rollout.dialogue)
        self._probe = self._dialogue.problem_prompt(problems[0])
        self._engine: Engine | None = None
        self._sandbox: Sandbox | None = None

    def has(self, step: int) -> bool:
        """Always: the problems begin anew when all were used."""
        return True

    def fill(self, store: StepStore, step: int, refill: int, policy: Policy, version: str) -> dict[str, float]:
        """See :class:`RolloutSource`. Raises ``Stopped`` as ``collect`` does; finished rollouts are kept."""
        if store.complete(step, refill):
            return {}
        give_back()  # what the last update took
        engine, synced = self._ready(policy, version)
        config = step_config(self._config, self._run, step)
        jobs = refill_jobs(self._problems, config, self._seed, refill) if refill else None
        with store.rollout_writer(step, refill) as writer:
            made = collect(
                self._problems,
                engine,
                self._open_sandbox(),
                self._dialogue,
                config,
                writer.write,
                self._report,
                seed=self._seed,
                done=writer.existing("id"),
                on_wave=writer.end_part,
                jobs=jobs,
            )
        engine.idle()  # the update needs the memory
        give_back()
        return {
            **synced,
            "seconds_generate": made.seconds,
            "generated_tokens_per_s": made.model_tokens / max(made.seconds, 1e-9),
            "prompts_too_long": float(len(made.too_long)),
        }

    def close(self) -> None:
        """Stop engine and sandbox."""
        if self._engine is not None:
            self._engine.close()
        if self._sandbox is not None:
            self._sandbox.close()

    def _report(self, progress: Progress) -> None:
        self._progress(dataclasses.replace(progress, detail=True))

    def _ready(self, policy: Policy, version: str) -> tuple[Engine, dict[str, float]]:
        """The engine with the present weights, proven by the probe."""
        if self._engine is None:
            self._engine = build_engine(self._config.rollout.engine, self._model, version="base")
        if self._engine.version == version:
            return self._engine, {}
        begun = time.monotonic()
        tolerance = self._config.probe_tolerance or self._default_tolerance(policy.model)
        difference = sync_weights(policy.model, self._engine, version, self._probe, tolerance=tolerance)
        return self._engine, {"seconds_sync": time.monotonic() - begun, "probe": difference}

    def _default_tolerance(self, model: Any) -> float:
        """That of the coarser type of the two."""
        chosen = self._config.rollout.engine
        engine = pick_dtype(chosen.dtype, pick_device(chosen.device))
        return max(TOLERANCE[engine], TOLERANCE[next(model.parameters()).dtype])

    def _open_sandbox(self) -> Sandbox:
        if self._sandbox is None:
            self._sandbox = build_sandbox(self._config.rollout.sandbox)
        return self._sandbox


class StoredRollouts:
    """Trajectories that ``rollout --step k`` wrote, copied into the run step by step."""

    def __init__(self, inputs: Sequence[str], *, off_policy: bool) -> None:
        """``off_policy``: take the trajectories of any policy, not of the present one alone.

        Raises ``InputMissing`` if there are none, ``DataError`` on plain rollouts and doubled ids.
        """
        self._off_policy = off_policy
        self._steps: dict[int, list[Trajectory]] = {}
        seen: set[str] = set()
        for trajectory in read_records(inputs, Trajectory):
            if trajectory.step < 1:
                raise DataError(
                    f"trajectory {trajectory.id}: of no training step",
                    hint="make rollouts with: rstar2 rollout --set step=1",
                )
            if trajectory.id in seen:
                raise DataError(f"trajectory {trajectory.id}: there twice", hint="give each rollout once")
            seen.add(trajectory.id)
            self._steps.setdefault(trajectory.step, []).append(trajectory)
        if not seen:
            raise InputMissing(f"{', '.join(inputs)}: no trajectories")

    def has(self, step: int) -> bool:
        """Whether any trajectory is of this step."""
        return step in self._steps

    def fill(self, store: StepStore, step: int, refill: int, policy: Policy, version: str) -> dict[str, float]:
        """See :class:`RolloutSource`. Raises ``DataError`` if another policy wrote them."""
        trajectories = self._steps.pop(step, []) if not refill else []
        if trajectories and not self._off_policy:
            check_policy(trajectories, _names(policy, version))
        if not store.complete(step, refill):
            with store.rollout_writer(step, refill) as writer:
                done = writer.existing("id")
                for trajectory in trajectories:
                    if trajectory.id not in done:
                        writer.write(trajectory)
        return {}

    def close(self) -> None:
        """Nothing to free."""


def _names(policy: Policy, version: str) -> set[str]:
    """What the present weights are called: their version in the run, and the digest of a checkpoint of them."""
    names = {version, model_digest(policy.model)}
    if version.endswith("@0"):  # no update yet: the checkpoint that the training starts from, whatever its type
        names.add(policy.digest)
    return names


def check_policy(trajectories: Sequence[Trajectory], accepted: Collection[str]) -> None:
    """Raise ``DataError`` unless every turn was written by one of the accepted policies."""
    for trajectory in trajectories:
        other = next((turn.policy for turn in trajectory.turns if turn.policy not in accepted), None)
        if other is not None:
            raise DataError(
                f"trajectory {trajectory.id}: written by policy {other}, "
                f"the present one is {' or '.join(sorted(accepted))}",
                hint="make rollouts with the present model, or take them with --off-policy",
            )


def step_config(config: TrainRlConfig, run: str, step: int) -> RolloutConfig:
    """The configuration with which a step's rollouts are made."""
    return dataclasses.replace(
        config.rollout, run=run, step=step, problems_per_step=config.prompts_per_step, samples=config.samples
    )


def refill_jobs(problems: Sequence[Problem], config: RolloutConfig, seed: int, refill: int) -> list[Job]:
    """Trajectories of the ``refill``-th filling up of ``config.step``: other problems than the step's, in new slots.

    Problems are drawn without replacement by (``seed``, "refill", step); there may be too few of them.
    """
    count = config.problems_per_step
    own = set(step_places(len(problems), config.step, count, seed))
    others = [place for place in range(len(problems)) if place not in own]
    generator(seed, "refill", config.step).shuffle(others)
    chosen = others[(refill - 1) * count : refill * count]
    return [
        job
        for slot, place in enumerate(chosen, start=refill * count)
        for job in group_jobs(problems[place], slot, config, seed)
    ]
