"""What is worth plotting about a step's rollouts and their selection: names and numbers, no records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rstar2cli.records import Trajectory
from rstar2cli.rl.loss import Mismatch
from rstar2cli.rl.selection import StepSelection


def rollout_metrics(trajectories: Sequence[Trajectory], selection: StepSelection) -> dict[str, float]:
    """Figures of one step; a mean over nothing is left out.

    Rewards are over all usable rollouts before RoC; ``*_kept`` are over what is trained on.
    """
    usable = [one for one in trajectories if one.reward is not None and one.finish != "lost"]
    positive = [one for one in usable if (one.reward or 0) > 0]
    kept = [one.trajectory for one in selection.kept]
    kept_positive = [one for one in kept if (one.reward or 0) > 0]
    values: dict[str, float | None] = {
        "reward": _mean(usable, lambda one: one.reward or 0.0),
        "reward_kept": _mean(kept, lambda one: one.reward or 0.0),
        "rollouts": float(len(trajectories)),
        "rollouts_kept": float(len(kept)),
        "positives_kept": float(len(kept_positive)),
        "negatives_kept": float(len(kept) - len(kept_positive)),
        "groups": float(selection.groups),
        "groups_kept": float(selection.kept_groups),
        **{
            f"groups_{reason}": float(selection.dropped[reason])
            for reason in ("group_too_small", "equal_rewards", "equal_after_selection")
        },
        "roc_faults": float(selection.faults),
        "lost": float(selection.why["lost"]),
        "undecided": float(selection.why["undecided"]),
        "tool_error_share": _tool_error_share(usable),
        "tool_error_share_positive": _tool_error_share(positive),
        "tool_error_share_kept": _tool_error_share(kept),
        "p_err": _mean(usable, lambda one: one.p_err),
        "p_err_kept_positive": _mean(kept_positive, lambda one: one.p_err),
        "p_err_positive": _mean(positive, lambda one: one.p_err),
        "p_format": _mean(usable, lambda one: one.p_format),
        "p_format_kept_positive": _mean(kept_positive, lambda one: one.p_format),
        "p_format_positive": _mean(positive, lambda one: one.p_format),
        "response_tokens": _mean(usable, lambda one: len(one.response_ids)),
        "response_tokens_positive": _mean(positive, lambda one: len(one.response_ids)),
        "model_tokens": _mean(usable, lambda one: sum(one.mask)),
        "truncated_share": _mean(usable, lambda one: one.finish == "length"),
        "turn_limit_share": _mean(usable, lambda one: one.finish == "turn_limit"),
        "turns": _mean(usable, lambda one: one.n_turns),
        "tool_calls": _mean(usable, lambda one: one.n_tool_calls),
        "answers": _mean(usable, lambda one: one.n_answers),
    }
    return {name: value for name, value in values.items() if value is not None}


def mismatch_metrics(sums: Mismatch) -> dict[str, float]:
    """Trainer against sampler over the trained tokens: nothing if there were none."""
    if sums.tokens == 0:
        return {}
    return {
        "mismatch_weight": sums.weight_sum / sums.tokens,
        "mismatch_kl": sums.kl_sum / sums.tokens,
        "mismatch_max": sums.max_delta,
    }


def _tool_error_share(trajectories: Iterable[Trajectory]) -> float | None:
    """Failed calls / answered calls over all of them together (not a mean of shares)."""
    calls = errors = 0
    for one in trajectories:
        calls += one.n_tool_calls
        errors += one.n_tool_errors
    return errors / calls if calls else None


def _mean(items: Sequence[Trajectory], value: Callable[[Trajectory], float]) -> float | None:
    return sum(value(item) for item in items) / len(items) if items else None
