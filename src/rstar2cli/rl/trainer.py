"""The loop of GRPO-RoC: rollouts → selection → one optimizer step → new weights for the engine.

A step is what a run counts: its rollouts, its metrics, its learning rate and its checkpoint have
one number, whether it took one update, several (``mini_batches``) or none (an empty step).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from torch import Tensor

from rstar2cli.core.config import to_dict
from rstar2cli.core.errors import RstarError, Stopped, UsageError
from rstar2cli.core.progress import Progress, ProgressFn, silent
from rstar2cli.policy.describe import check_model
from rstar2cli.policy.digest import checkpoint_digest
from rstar2cli.policy.packing import MicroBatch
from rstar2cli.records import Problem, Trajectory
from rstar2cli.rl.batch import LossSums, RlBatch, make_batch, micro_loss, split_by_group
from rstar2cli.rl.config import TrainRlConfig
from rstar2cli.rl.metrics import mismatch_metrics, rollout_metrics
from rstar2cli.rl.selection import StepSelection, select_step
from rstar2cli.rl.source import LiveRollouts, RolloutSource, StoredRollouts
from rstar2cli.rl.store import StepStore
from rstar2cli.shards.lineage import Lineage
from rstar2cli.shards.rejects import Reject
from rstar2cli.training.loop import StepResult, Trainer
from rstar2cli.training.rundir import CHECKPOINTS, MODEL, is_done, open_run, run_name, write_rejects
from rstar2cli.training.state import newest_state

STAGE = "train-rl"


@dataclass(frozen=True, kw_only=True)
class RlResult:
    """What a training came to."""

    steps: int
    """Steps done in all, empty ones included."""
    updates: int
    """Optimizer updates in all."""
    empty: int
    """Steps without an update, in all."""
    policy: str
    """Digest of the final weights."""
    metrics: Mapping[str, float]
    """Figures of the last step of this call; empty if there was nothing to do."""


def train_rl(
    problems: Sequence[Problem],
    model: str,
    out: str,
    config: TrainRlConfig,
    progress: ProgressFn = silent,
    *,
    seed: int = 0,
    resume: bool = False,
    overwrite: bool = False,
    rollouts: Sequence[str] = (),
    off_policy: bool = False,
    lineage: Lineage | None = None,
    resolved: Mapping[str, Any] | None = None,
    rejects: Sequence[Reject] = (),
) -> RlResult:
    """Train ``model`` on ``problems`` and write a run directory with the final model.

    ``rollouts``: train on these stored trajectories, as many consecutive steps as there are, instead of
    generating; ``off_policy`` accepts those of another policy. ``resolved``: the configuration to note in the run
    (default: ``config``); ``lineage``: where it comes from; ``rejects``: input rows left out. Raises ``Stopped``
    (resumable) after a signal, past ``rollout.max_lost`` and after ``max_empty`` empty steps in a row, and what
    ``open_run``, ``Trainer``, ``collect`` and ``sync_weights`` raise.
    """
    run = run_name(out)
    if ":" in run:
        raise UsageError(f"{out}: the run is named after its directory, and ':' separates the parts of an id")
    noted = {**(resolved or {"config": to_dict(config), "seed": seed}), "model": model, "data": data_digest(problems)}
    stored = StoredRollouts(rollouts, off_policy=off_policy) if rollouts else None
    check_model(model)  # a model that can't be read is told before --overwrite clears anything
    with open_run(out, stage=STAGE, config=noted, resume=resume, overwrite=overwrite) as path:
        write_rejects(path, rejects)
        if resume and (finished := _finished(path, config)):
            return finished
        trainer = Trainer(model, path, config.optim, total_steps=config.steps)
        caller = trainer.resume() or {}
        digest = trainer.policy.digest
        origin = lineage or Lineage(command=[], config=noted, inputs={}, seed=seed)
        origin = msgspec.structs.replace(origin, model=digest)
        store = StepStore(path, origin, seed, rows_per_part=config.rollout.save_every)
        source: RolloutSource = stored or LiveRollouts(
            problems, model, trainer.policy.tokenizer, config, run, seed, progress
        )
        loop = _Loop(trainer, store, source, config, run, seed, progress, caller, off_policy=off_policy)
        try:
            return loop.run()
        finally:
            source.close()


def data_digest(problems: Sequence[Problem]) -> str:
    """First 16 hex digits of the blake2b over the problems in order: a resume must see the same ones."""
    hasher = hashlib.blake2b(digest_size=8)
    for problem in problems:
        hasher.update(repr((problem.id, problem.prompt, problem.answer)).encode())
    return hasher.hexdigest()


def _finished(path: Path, config: TrainRlConfig) -> RlResult | None:
    """The result of a run that has nothing left to do."""
    state = newest_state(path / CHECKPOINTS) if is_done(path) else None
    if state is None or state.step < config.steps:
        return None
    counts = state.caller
    policy = checkpoint_digest(path / MODEL)
    return RlResult(steps=state.step, updates=counts["updates"], empty=counts["empty"], policy=policy, metrics={})


class _Loop:
    """One call of :func:`train_rl`, from the step that the checkpoint left off at."""

    def __init__(
        self,
        trainer: Trainer,
        store: StepStore,
        source: RolloutSource,
        config: TrainRlConfig,
        run: str,
        seed: int,
        progress: ProgressFn,
        caller: Mapping[str, Any],
        *,
        off_policy: bool,
    ) -> None:
        self._trainer = trainer
        self._store = store
        self._source = source
        self._config = config
        self._run = run
        self._seed = seed
        self._progress = progress
        self._off_policy = off_policy
        self._updates = int(caller.get("updates", 0))
        self._empty = int(caller.get("empty", 0))
        self._empty_in_row = int(caller.get("empty_in_row", 0))
        self._saved = trainer.step_done
        self._halfway = False  # weights between two updates of one step: no checkpoint can say so
        self._metrics: dict[str, float] = {}

    @property
    def version(self) -> str:
        """Name of the present weights."""
        return f"{self._trainer.policy.digest}+{self._run}@{self._updates}"

    def run(self) -> RlResult:
        """All steps that are left."""
        trainer = self._trainer
        while trainer.step_done < self._config.steps and self._source.has(trainer.step_done + 1):
            try:
                self._step(trainer.step_done + 1)
            except RstarError:
                if not self._halfway:
                    self._save()
                raise
            trainer.safe_point(self._caller())
        self._save()
        return RlResult(
            steps=trainer.step_done,
            updates=self._updates,
            empty=self._empty,
            policy=trainer.finish(),
            metrics=self._metrics,
        )

    def _step(self, step: int) -> None:
        begun = time.monotonic()
        trajectories, figures = self._rollouts(step)
        selection = select_step(trajectories, self._config.roc, self._config.loss, self._seed)
        if self._trainer.parallel.main:
            self._store.write_selections(step, selection.records)
        figures |= rollout_metrics(trajectories, selection)
        figures |= self._update(step, selection) if selection.kept else self._skip(step)
        figures["seconds_step"] = time.monotonic() - begun
        figures["updates"] = float(self._updates)
        self._trainer.record(figures)
        self._metrics = figures
        self._report(step, figures)
        if self._empty_in_row >= self._config.max_empty:
            raise Stopped(
                f"step {step}: no group to train on for {self._empty_in_row} steps in a row "
                "(all rollouts of each problem are right, or all wrong)",
                hint="use harder or easier problems, more samples, or raise max_empty",
            )

    def _rollouts(self, step: int) -> tuple[list[Trajectory], dict[str, float]]:
        """The step's trajectories, filled up with new prompts while too few groups would be kept."""
        config = self._config
        figures = self._fill(step, 0)
        trajectories = self._store.read(step)
        for refill in range(1, config.refill + 1):
            if select_step(trajectories, config.roc, config.loss, self._seed).kept_groups >= config.min_groups:
                break
            more = self._fill(step, refill)
            fresh = self._store.read(step, refill)
            for name in ("seconds_generate", "seconds_sync", "prompts_too_long"):
                if name in more or name in figures:
                    figures[name] = figures.get(name, 0.0) + more.get(name, 0.0)
            figures["refills"] = float(refill)
            trajectories += fresh
        return trajectories, figures

    def _fill(self, step: int, refill: int) -> dict[str, float]:
        """Rank 0 completes the store; the others wait, and stop if it could not."""
        parallel = self._trainer.parallel
        figures: dict[str, float] = {}
        error: RstarError | None = None
        if parallel.main:
            try:
                figures = self._source.fill(self._store, step, refill, self._trainer.policy, self.version)
            except RstarError as raised:
                error = raised
        failure = parallel.broadcast(error.message if error else None)
        if error is not None:
            raise error
        if failure is not None:
            raise Stopped(f"stopped by the first process: {failure}")
        return figures

    def _update(self, step: int, selection: StepSelection) -> dict[str, float]:
        """The optimizer updates of a step; figures of them, means over updates."""
        parts = split_by_group(selection.kept, self._config.mini_batches)
        batches = [make_batch(part, self._config.loss) for part in parts]
        old = [self._old_logprobs(batch, len(batches)) for batch in batches]
        sums = LossSums()
        results = []
        for batch, before in zip(batches, old, strict=True):
            self._trainer.step_done = step - 1  # several updates are still one step
            results.append(self._one_update(batch, before, sums))
            self._updates += 1
            self._halfway = True
        self._halfway = False
        self._empty_in_row = 0
        sums = sums.over_ranks(self._trainer.parallel, self._trainer.device)
        return {**_mean_metrics(results), **sums.metrics(), **mismatch_metrics(sums.mismatch)}

    def _old_logprobs(self, batch: RlBatch, updates: int) -> Tensor | None:
        """Log-probs that the ratio is taken against; null where they are the present ones."""
        if self._off_policy:
            return batch.sampler
        if updates == 1:
            return None
        return self._trainer.logprobs(batch.sequences, temperature=self._config.rollout.sampling.temperature)

    def _one_update(self, batch: RlBatch, old: Tensor | None, sums: LossSums) -> StepResult:
        def loss(logp: Tensor, micro: MicroBatch) -> Tensor:
            return micro_loss(logp, micro, batch, self._config.loss, sums, old=old)

        return self._trainer.step(batch.sequences, loss, temperature=self._config.rollout.sampling.temperature)

    def _skip(self, step: int) -> dict[str, float]:
        self._trainer.step_done = step
        self._empty += 1
        self._empty_in_row += 1
        return {"empty_step": 1.0}

    def _caller(self) -> dict[str, Any]:
        return {"updates": self._updates, "empty": self._empty, "empty_in_row": self._empty_in_row}

    def _save(self) -> None:
        """A checkpoint of the last finished step, unless it is that which the run was resumed from."""
        if self._trainer.step_done > self._saved:
            self._trainer.save(self._caller())
            self._saved = self._trainer.step_done

    def _report(self, step: int, figures: Mapping[str, float]) -> None:
        shown = ("reward", "groups_kept", "tool_error_share", "response_tokens", "loss")
        info: dict[str, float | int | str] = {name: round(figures[name], 4) for name in shown if name in figures}
        total = self._config.steps
        self._progress(Progress(task=STAGE, done=step, total=total, unit="steps", info=info, landmark=True))


def _mean_metrics(results: Sequence[StepResult]) -> dict[str, float]:
    """Means over a step's updates; tokens and seconds are sums."""
    every = [result.metrics() for result in results]
    figures = {name: sum(one[name] for one in every) / len(every) for name in ("loss", "grad_norm", "lr")}
    seconds = sum(result.seconds for result in results)
    tokens = sum(result.tokens for result in results)
    return {
        **figures,
        "train_tokens": float(tokens),
        "counted_tokens": float(sum(result.counted for result in results)),
        "seconds_train": seconds,
        "tokens_per_s": tokens / max(seconds, 1e-9),
    }
