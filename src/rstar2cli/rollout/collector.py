"""From problems to graded trajectories: what ``rollout``, ``eval`` and ``train-rl`` call."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from rstar2cli.core.errors import Stopped
from rstar2cli.core.progress import Progress, ProgressFn, silent
from rstar2cli.dialogue.dialogue import Dialogue
from rstar2cli.engines.base import Engine
from rstar2cli.grading.grade import Grade, shared_grader
from rstar2cli.records import Problem, Trajectory
from rstar2cli.rollout.config import RolloutConfig
from rstar2cli.rollout.episode import Episode
from rstar2cli.rollout.jobs import Job, make_jobs
from rstar2cli.rollout.scheduler import Scheduler
from rstar2cli.rollout.tools import ToolRunner
from rstar2cli.rollout.waves import run_wave, waves_of
from rstar2cli.sandbox.outcome import Sandbox

_LOST_FROM = 20
"""Trajectories before the share of lost ones is judged."""


@dataclass(kw_only=True)
class Collected:
    """What a collection came to."""

    trajectories: int = 0
    """Trajectories made."""
    rewarded: int = 0
    """With a reward: neither lost nor undecided."""
    correct: int = 0
    """With reward 1."""
    lost: int = 0
    """Lost to failures of ours."""
    undecided: int = 0
    """Not lost, but without a verdict."""
    truncated: int = 0
    """Ended by the token limit."""
    tool_calls: int = 0
    """Answered tool calls."""
    tool_errors: int = 0
    """Answered calls that failed."""
    clock_dependent: int = 0
    """In deterministic mode: trajectories with an outcome that the clock decided."""
    model_tokens: int = 0
    """Tokens that the model wrote."""
    seconds: float = 0.0
    """Wall time."""
    too_long: list[str] = field(default_factory=list)
    """Ids of problems whose prompt is too long; they have no trajectories."""

    @property
    def reward(self) -> float | None:
        """Share of the rewarded ones that are correct, 0 to 1; null if none has a reward: failures of ours are no
        wrong answers."""
        return self.correct / self.rewarded if self.rewarded else None

    def add(self, trajectory: Trajectory, deterministic: bool) -> None:
        """Count one."""
        self.trajectories += 1
        self.rewarded += trajectory.reward is not None
        self.correct += trajectory.reward == 1.0
        self.lost += trajectory.finish == "lost"
        self.undecided += trajectory.finish != "lost" and trajectory.verdict == "undecided"
        self.truncated += trajectory.finish == "length"
        self.tool_calls += trajectory.n_tool_calls
        self.tool_errors += trajectory.n_tool_errors
        self.clock_dependent += deterministic and not trajectory.deterministic
        self.model_tokens += sum(turn.n_tokens for turn in trajectory.turns)


def collect(
    problems: Sequence[Problem],
    engine: Engine,
    sandbox: Sandbox,
    dialogue: Dialogue,
    config: RolloutConfig,
    on_trajectory: Callable[[Trajectory], None],
    progress: ProgressFn = silent,
    *,
    seed: int = 0,
    done: Collection[str] = (),
    on_wave: Callable[[], None] | None = None,
    jobs: Sequence[Job] | None = None,
) -> Collected:
    """Make ``config.samples`` trajectories of every problem of ``config.step``, graded.

    ``on_trajectory`` gets each as it finishes (in deterministic mode: in order). ``done`` holds
    ids that exist already: they are not made again, or in deterministic mode, where the wave is
    the unit, not handed over again. ``on_wave`` is called after each deterministic wave. ``jobs``
    are made instead of those of the step, if given.
    Raises ``Stopped`` after a signal, or once more than ``config.max_lost`` are lost or undecided.
    """
    wanted = make_jobs(problems, config, seed) if jobs is None else jobs
    fitting, too_long = _fitting(wanted, engine, dialogue, config)
    grader = shared_grader(config.grading)
    tools = ToolRunner(sandbox, config.dialogue, config.tool_retries)
    tally = _Tally(config, len(fitting), on_trajectory, progress, frozenset(done))
    tally.result.too_long = too_long
    if config.deterministic:
        for wave in waves_of(fitting, config.wave):
            if all(job.id in tally.done for job, _ in wave):
                continue
            episodes = [Episode(job, prompt, config, dialogue, engine.max_length) for job, prompt in wave]
            run_wave(episodes, engine, tools, rows=config.wave)
            grades = [episode.grade(grader) for episode in episodes]
            for episode, graded in zip(episodes, grades, strict=True):
                tally.take(episode, graded.result())
            if on_wave is not None:
                on_wave()
    else:
        missing = ((job, prompt) for job, prompt in fitting if job.id not in tally.done)
        in_flight = config.in_flight or config.engine.max_running
        scheduler = Scheduler(engine, tools, grader, tally.take, in_flight=in_flight)
        scheduler.run(Episode(job, prompt, config, dialogue, engine.max_length) for job, prompt in missing)
    return tally.finish()


class _Tally:
    """Hands finished trajectories over, counts them, reports, and stops when too many are lost."""

    def __init__(
        self,
        config: RolloutConfig,
        total: int,
        on_trajectory: Callable[[Trajectory], None],
        progress: ProgressFn,
        done: frozenset[str],
    ) -> None:
        self.result = Collected()
        self.done = done
        self._config = config
        self._total = total
        self._on_trajectory = on_trajectory
        self._progress = progress
        self._begun = time.monotonic()

    def take(self, episode: Episode, grade: Grade) -> None:
        """A finished and graded episode."""
        if episode.job.id in self.done:  # its wave had to be made again for a neighbour
            return
        trajectory = episode.trajectory(grade)
        self._on_trajectory(trajectory)
        self.result.add(trajectory, self._config.deterministic)
        self._report()
        self._judge()

    def finish(self) -> Collected:
        """The counts, with the time they took."""
        self.result.seconds = time.monotonic() - self._begun
        return self.result

    def _report(self) -> None:
        made = self.result
        seconds = max(1e-9, time.monotonic() - self._begun)
        info: dict[str, float | int | str] = {} if made.reward is None else {"reward": round(made.reward, 3)}
        info["tokens_per_s"] = round(made.model_tokens / seconds)
        if made.lost or made.undecided:
            info |= {"lost": made.lost, "undecided": made.undecided}
        done = len(self.done) + made.trajectories
        self._progress(Progress(task="rollout", done=done, total=self._total, unit="trajectories", info=info))

    def _judge(self) -> None:
        made = self.result
        bad = made.lost + made.undecided
        if made.trajectories >= _LOST_FROM and bad > self._config.max_lost * made.trajectories:
            raise Stopped(
                f"{made.lost} of {made.trajectories} trajectories are lost to failures of ours and "
                f"{made.undecided} undecided, over the limit of {self._config.max_lost:.0%}",
                hint="see what failed in the columns extra and reason; raise max_lost if that is all right",
            )


def _fitting(
    jobs: Sequence[Job], engine: Engine, dialogue: Dialogue, config: RolloutConfig
) -> tuple[list[tuple[Job, list[int]]], list[str]]:
    """Jobs with their prompts, rendered once a problem; and the problems whose prompt is too long."""
    prompts: dict[str, list[int]] = {}
    fitting, too_long = [], []
    limit = min(config.max_prompt, engine.max_length - 1)
    for job in jobs:
        if job.problem.id not in prompts:
            prompt = dialogue.problem_prompt(job.problem)
            prompts[job.problem.id] = prompt
            if len(prompt) > limit:
                too_long.append(job.problem.id)
        if len(prompts[job.problem.id]) <= limit:
            fitting.append((job, prompts[job.problem.id]))
    return fitting, too_long
