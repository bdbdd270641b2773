"""An evaluation: sample every problem, grade, score, sum up.

The trajectories are what lasts: they are written as they finish, and a stopped evaluation
goes on from them. Scores are derived from the finished trajectories, in the order of the
problems, so that they do not depend on the order of arrival.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rstar2cli.core.errors import DataError, InputMissing
from rstar2cli.core.progress import Progress, ProgressFn, silent
from rstar2cli.dialogue.dialogue import Dialogue
from rstar2cli.engines.base import Engine
from rstar2cli.engines.build import build_engine
from rstar2cli.evals.config import EvalConfig
from rstar2cli.policy.load import load_tokenizer
from rstar2cli.records import Problem, Score, Trajectory
from rstar2cli.rollout.collector import collect
from rstar2cli.sandbox.build import build_sandbox
from rstar2cli.sandbox.outcome import Sandbox
from rstar2cli.shards.atomic import write_bytes
from rstar2cli.shards.lineage import Lineage
from rstar2cli.shards.reader import read_records
from rstar2cli.shards.writer import Writer, open_writer
from rstar2cli.stats.scores import METRIC, ScoreSummary, score_of, summarize

RESULT = "result.json"
"""The figures of an evaluation, in its directory."""
TOO_LONG = "prompt_too_long"
"""`detail.finish` of the scores of a problem whose prompt does not fit."""


@dataclass(frozen=True, kw_only=True)
class EvalResult:
    """What an evaluation came to."""

    summary: ScoreSummary
    """Figures over all problems."""
    benchmarks: dict[str, ScoreSummary]
    """The same for each benchmark by itself."""
    too_long: list[str]
    """Ids of problems whose prompt does not fit; they count as undecided."""
    lost: int
    """Samples lost to failures of ours; they are among the undecided."""
    resumed: int
    """Samples that an earlier run of the command had made."""
    seconds: float | None
    """Wall time of the sampling, model loading included; null if an earlier run of the command that was stopped
    made some of the samples: its time is not known."""

    def to_dict(self) -> dict[str, Any]:
        """Flat JSON-ready figures; the benchmarks below ``benchmarks``."""
        values = dataclasses.asdict(self)
        return {**values.pop("summary"), **values}


def run_eval(
    problems: Sequence[Problem],
    model: str,
    config: EvalConfig,
    scores: Writer[Score],
    *,
    directory: str,
    lineage: Lineage,
    resolved: dict[str, Any],
    seed: int = 0,
    resume: bool = False,
    progress: ProgressFn = silent,
) -> EvalResult:
    """Sample ``config.rollout.samples`` answers of ``model`` to every problem and write their scores.

    ``directory`` gets ``trajectories`` (with ``resume`` only missing ones are made) and
    ``result.json``. ``resolved`` is the configuration written beside the trajectories; another one,
    or another model or input by ``lineage``, is refused on resume. What ``scores`` replaces is in its place
    until engine and sandbox are up, and not lost until the scores are written. Raises ``InputMissing`` without
    problems, ``DataError`` for ids that occur twice, ``Stopped`` after a signal or too many losses, and what engine,
    model and writer raise.
    """
    if not problems:
        raise InputMissing("no problems to evaluate on", hint="look at the input with: rstar2 head IN")
    _check_ids(problems)
    begun = time.monotonic()
    kept = str(Path(directory) / "trajectories")

    def open_trajectories() -> Writer[Trajectory]:
        return open_writer(
            kept,
            Trajectory,
            lineage=lineage,
            config=resolved,
            resume=resume,
            rows_per_part=config.rollout.save_every,
        )

    if scores.replaces:
        # The old trajectories are in the way until the scores' writer has set them aside, with the old scores.
        with _ready(model, config) as tools:
            scores.begin()
            with open_trajectories() as writer:
                _sample(problems, config, tools, writer, seed, progress)
    else:
        with open_trajectories() as writer:
            if not writer.complete:
                with _ready(model, config) as tools:
                    scores.begin()  # first: without a manifest nobody takes the scores for all
                    (Path(directory) / RESULT).unlink(missing_ok=True)
                    _sample(problems, config, tools, writer, seed, progress)
    resumed = writer.rows_done
    if writer.complete:
        seconds = _seconds_before(directory)
    else:
        seconds = None if resumed else time.monotonic() - begun
    made = score_all(read_records([kept], Trajectory), problems, config)
    if not scores.complete:
        _write_missing(made, scores)
    result = report(made, resumed=resumed, seconds=seconds, seed=seed)
    text = json.dumps(result.to_dict(), indent=2, ensure_ascii=False)
    write_bytes(Path(directory) / RESULT, text.encode() + b"\n")
    return result


def _check_ids(problems: Sequence[Problem]) -> None:
    """Scores and trajectories name their problem by its id alone."""
    twice = [name for name, times in Counter(problem.id for problem in problems).items() if times > 1]
    if twice:
        raise DataError(
            f"{len(twice)} problem ids occur more than once, the first: {twice[0]!r}",
            hint="give ids that are unique over all inputs, or evaluate the inputs one by one",
        )


def _write_missing(made: Sequence[Score], writer: Writer[Score]) -> None:
    """Scores are derived anew after a stop: those in finished parts are the same and stay."""
    for score in made[writer.rows :]:
        writer.write(score)


def _seconds_before(directory: str) -> float | None:
    """Wall time that the earlier run of the command recorded; null if it was stopped before it could."""
    path = Path(directory) / RESULT
    if not path.is_file():
        return None
    seconds = json.loads(path.read_text(encoding="utf-8")).get("seconds")
    return None if seconds is None else float(seconds)


def score_all(trajectories: Iterable[Trajectory], problems: Sequence[Problem], config: EvalConfig) -> list[Score]:
    """One score a sample, problems in their order; undecided ones for problems without trajectories."""
    held: dict[int, list[tuple[int, Score]]] = {}
    for trajectory in trajectories:
        score = score_of(trajectory, config.benchmark or trajectory.source)
        held.setdefault(trajectory.slot, []).append((trajectory.sample, score))
    made: list[Score] = []
    for slot, problem in enumerate(problems):
        own = sorted(held.get(slot, []), key=lambda item: item[0])
        made += [score for _, score in own] or _unsampled(problem, config)
    return made


def report(
    scores: Sequence[Score],
    *,
    resumed: int = 0,
    seconds: float | None = None,
    seed: int = 0,
) -> EvalResult:
    """The figures of finished scores, together and by benchmark."""
    by_benchmark: dict[str, list[Score]] = {}
    for score in scores:
        by_benchmark.setdefault(score.benchmark, []).append(score)
    return EvalResult(
        summary=summarize(scores, _problem, seed=seed),
        benchmarks={name: summarize(own, _problem, seed=seed) for name, own in by_benchmark.items()},
        too_long=list(dict.fromkeys(s.problem_id for s in scores if s.detail.get("finish") == TOO_LONG)),
        lost=sum(score.detail.get("finish") == "lost" for score in scores),
        resumed=resumed,
        seconds=seconds,
    )


_Tools = tuple[Engine, Sandbox, Dialogue]


@contextlib.contextmanager
def _ready(model: str, config: EvalConfig) -> Iterator[_Tools]:
    """What sampling needs, up and running: before it is, no output is touched."""
    dialogue = Dialogue(load_tokenizer(model), config.rollout.dialogue)
    engine = build_engine(config.rollout.engine, model)
    try:
        sandbox = build_sandbox(config.rollout.sandbox)
        try:
            yield engine, sandbox, dialogue
        finally:
            sandbox.close()
    finally:
        engine.close()


def _sample(
    problems: Sequence[Problem],
    config: EvalConfig,
    tools: _Tools,
    writer: Writer[Trajectory],
    seed: int,
    progress: ProgressFn,
) -> None:
    """Make the trajectories that are missing."""
    engine, sandbox, dialogue = tools
    collect(
        problems,
        engine,
        sandbox,
        dialogue,
        config.rollout,
        writer.write,
        _renamed(progress),
        seed=seed,
        done=writer.existing("id") if writer.rows_done else set(),
        on_wave=writer.end_part,
    )


def _unsampled(problem: Problem, config: EvalConfig) -> list[Score]:
    return [
        Score(
            benchmark=config.benchmark or problem.source,
            problem_id=problem.id,
            sample=sample,
            metric=METRIC,
            value=None,
            verdict="undecided",
            detail={"finish": TOO_LONG},
        )
        for sample in range(config.rollout.samples)
    ]


def _problem(score: Score) -> tuple[str, str]:
    return score.benchmark, score.problem_id


def _renamed(progress: ProgressFn) -> ProgressFn:
    def report_as_eval(step: Progress) -> None:
        progress(dataclasses.replace(step, task="eval"))

    return report_as_eval
