"""A comparison (:func:`rstar2cli.views.compare.compare`) as text for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rstar2cli.views import escape
from rstar2cli.views.tables import NULL, cell, render

_SHOWN_IDS = 8
_SHOWN_CHARS = 60


def draw(comparison: Mapping[str, Any], *, width: int | None = None) -> str:
    """Scores with intervals, then what each step gained and lost, then what changed in configuration."""
    parts = [
        *(render(rows, "table", width=width) for rows in tables(comparison)),
        "".join(_flips(pair) for pair in comparison["pairs"]),
        _configuration(comparison, width),
    ]
    return "\n".join(part for part in parts if part)


def tables(comparison: Mapping[str, Any]) -> list[list[dict[str, str | int]]]:
    """Rows of the runs, and of the steps between them, in words for people."""
    return [[run_row(run) for run in comparison["runs"]], [pair_row(pair) for pair in comparison["pairs"]]]


def rows(comparison: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All of it as rows for machines: ``row`` says what each is of."""
    found = [{"row": "run", **run} for run in comparison["runs"]]
    for pair in comparison["pairs"]:
        counts = {name: len(pair[name]) for name in ("gained", "lost")}
        found.append({"row": "difference", **pair, **counts})
        for name in counts:
            step = {"from": pair["from"], "to": pair["to"]}
            found += [{"row": "flip", **step, "change": name, "problem": problem} for problem in pair[name]]
    return found + [{"row": "configuration", **change} for change in comparison["configuration"]]


def run_row(run: Mapping[str, Any]) -> dict[str, str | int]:
    """The figures of one run as a row of the table."""
    row: dict[str, str | int] = {
        "run": run["label"],
        "pass@1": f"{run['pass_at_1']:.3f}",
        "95% interval": f"{run['low']:.3f} to {run['high']:.3f}",
    }
    if run["pass_at_k"] is not None:
        row[f"pass@{run['k']}"] = f"{run['pass_at_k']:.3f}"
    return row | {
        "problems": run["problems"],
        "samples": run["samples"],
        "undecided": run["undecided"],
        "tool errors": _percent(run["tool_error_share"]),
        "tokens": _number(run["mean_tokens"], 0),
        "turns": _number(run["mean_turns"], 2),
        "cut off": _percent(run["truncated_share"]),
        "seconds": _number(run["seconds"], 0),
    }


def pair_row(pair: Mapping[str, Any]) -> dict[str, str | int]:
    """One step from a run to the next as a row of the table."""
    return {
        "step": f"{pair['from']} → {pair['to']}",
        "difference": f"{pair['difference']:+.3f}",
        "95% interval": f"{pair['low']:+.3f} to {pair['high']:+.3f}",
        "excludes 0": "yes" if pair["excludes_zero"] else "no",
        "gained": len(pair["gained"]),
        "lost": len(pair["lost"]),
        "McNemar p": f"{pair['p_mcnemar']:.2g}",
        "problems": pair["problems"],
        "not in both": pair["only_from"] + pair["only_to"],
    }


def _flips(pair: Mapping[str, Any]) -> str:
    lines = []
    for name in ("gained", "lost"):
        ids = pair[name]
        if ids:
            shown = ", ".join(escape.one_line(problem) for problem in ids[:_SHOWN_IDS])
            more = f", and {len(ids) - _SHOWN_IDS} more" if len(ids) > _SHOWN_IDS else ""
            step = escape.one_line(f"{pair['from']} → {pair['to']}")
            lines.append(f"{step} {name}: {shown}{more}\n")
    return "".join(lines)


def _configuration(comparison: Mapping[str, Any], width: int | None) -> str:
    labels = [run["label"] for run in comparison["runs"]]
    rows = []
    for change in comparison["configuration"]:
        values = {label: _short(change["values"][label]) for label in labels if label in change["values"]}
        rows.append({"configuration": change["key"], **{label: values.get(label, NULL) for label in labels}})
    return render(rows, "table", width=width)


def _short(value: Any) -> str:
    text = cell(value)
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"


def _percent(value: float | None) -> str:
    return NULL if value is None else f"{value:.1%}"


def _number(value: float | None, digits: int) -> str:
    return NULL if value is None else f"{value:.{digits}f}"
