"""Scores summed up: the one way from graded answers to the figures of eval and diff."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from rstar2cli.records import Score, Trajectory
from rstar2cli.stats import bootstrap
from rstar2cli.stats.passk import mean_pass_at_k

METRIC = "correct"
TRUNCATED = ("length", "tool_overflow")
"""Ways to end for want of token room."""

Key = Callable[[Score], Hashable]


@dataclass(frozen=True, kw_only=True)
class ScoreSummary:
    """What a set of scores says. Means over samples are null where no score carries the figure."""

    problems: int
    """Problems with at least one score."""
    samples: int
    """Scores."""
    pass_at_1: float
    """Mean over the samples of a problem, then over problems; undecided counts as not correct."""
    low: float
    """Lower end of the 95% bootstrap interval of pass@1, over problems."""
    high: float
    """Upper end."""
    pass_at_k: float | None
    """Unbiased pass@k at the smallest number of samples of any problem; null if that is 1."""
    k: int
    """That number."""
    undecided: int
    """Scores whose verdict is undecided (our fault, never the model's)."""
    tool_error_share: float | None
    """Tool errors / answered calls over all samples; null if none was answered."""
    mean_tokens: float | None
    """Response tokens of a sample, tool text included."""
    mean_turns: float | None
    """Turns of a sample."""
    mean_tool_calls: float | None
    """Answered tool calls of a sample."""
    truncated_share: float | None
    """Share of samples that ended for want of token room (`length`, `tool_overflow`)."""


def score_of(trajectory: Trajectory, benchmark: str) -> Score:
    """The score of a graded trajectory; value null if it is undecided or lost."""
    return Score(
        benchmark=benchmark,
        problem_id=trajectory.problem_id,
        sample=trajectory.sample,
        metric=METRIC,
        value=trajectory.reward,
        verdict=trajectory.verdict,
        detail={
            "tokens": len(trajectory.response_ids),
            "model_tokens": sum(trajectory.mask),
            "turns": trajectory.n_turns,
            "tool_calls": trajectory.n_tool_calls,
            "tool_errors": trajectory.n_tool_errors,
            "finish": trajectory.finish,
            "seconds": trajectory.timings.get("total"),
        },
        trajectory_id=trajectory.id,
    )


def problem_means(scores: Sequence[Score], key: Key) -> dict[Hashable, float]:
    """Mean value of each problem over its samples, in order of appearance; a null value counts as 0."""
    return bootstrap.problem_means(*_values(scores, key))


def summarize(scores: Sequence[Score], key: Key, *, seed: int = 0) -> ScoreSummary:
    """All figures of the scores of one metric. ``key`` names the problem. Raises ``ValueError`` without scores."""
    if not scores:
        raise ValueError("no scores to summarize")
    interval = bootstrap.mean_interval(*_values(scores, key), seed=seed)
    k, at_k = _pass_at_k(scores, key)
    calls, errors = _total(scores, "tool_calls"), _total(scores, "tool_errors")
    finishes = [score.detail["finish"] for score in scores if "finish" in score.detail]
    return ScoreSummary(
        problems=interval.n,
        samples=len(scores),
        pass_at_1=interval.mean,
        low=interval.low,
        high=interval.high,
        pass_at_k=at_k,
        k=k,
        undecided=sum(score.verdict == "undecided" for score in scores),
        tool_error_share=errors / calls if calls else None,
        mean_tokens=_mean(scores, "tokens"),
        mean_turns=_mean(scores, "turns"),
        mean_tool_calls=_mean(scores, "tool_calls"),
        truncated_share=sum(finish in TRUNCATED for finish in finishes) / len(finishes) if finishes else None,
    )


def _values(scores: Sequence[Score], key: Key) -> tuple[list[float], list[Hashable]]:
    return [score.value or 0.0 for score in scores], [key(score) for score in scores]


def _pass_at_k(scores: Sequence[Score], key: Key) -> tuple[int, float | None]:
    counts: dict[Hashable, list[int]] = {}
    for score in scores:
        count = counts.setdefault(key(score), [0, 0])
        count[0] += 1
        count[1] += score.value == 1
    k = min(n for n, _ in counts.values())
    if k == 1 or any(score.value not in (None, 0, 1) for score in scores):
        return k, None
    return k, mean_pass_at_k([(n, correct) for n, correct in counts.values()], k)


def _figures(scores: Sequence[Score], name: str) -> list[float]:
    values = (score.detail.get(name) for score in scores)
    return [value for value in values if isinstance(value, int | float)]


def _total(scores: Sequence[Score], name: str) -> float:
    return sum(_figures(scores, name))


def _mean(scores: Sequence[Score], name: str) -> float | None:
    values = _figures(scores, name)
    return sum(values) / len(values) if values else None
