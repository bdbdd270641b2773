"""Curves of metrics: in the terminal, or as PNG where matplotlib is installed."""

from __future__ import annotations

import difflib
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from rstar2cli.core.errors import EnvironmentMissing, InputMissing, OutputConflict, UsageError
from rstar2cli.records import Metric
from rstar2cli.shards.reader import read_records
from rstar2cli.views import escape
from rstar2cli.views.braille import Canvas

_SIGNS = "●▲■◆○△□◇"
_COLORS = [f"\x1b[{code}m" for code in (36, 33, 35, 32, 34, 31)]


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One metric of one run."""

    label: str
    """Name in the legend."""
    points: tuple[tuple[int, float], ...]
    """(step, value) in the order of steps; finite values only."""


def read_curve(label: str, source: str, name: str) -> Curve:
    """The metric ``name`` of a run directory or a file of metric records; the last value of a step counts.

    Raises ``UsageError`` if the run has no such metric (its names are listed), ``InputMissing``
    if it has no finite value.
    """
    values: dict[int, float] = {}
    names: set[str] = set()
    for metric in read_records([source], Metric):
        names.add(metric.name)
        if metric.name == name:
            values[metric.step] = metric.value
    if name not in names:
        close = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise UsageError(f"{source}: no metric {name!r}", hint=f"{hint}it has: {', '.join(sorted(names)) or 'none'}")
    points = tuple((step, value) for step, value in sorted(values.items()) if math.isfinite(value))
    if not points:
        raise InputMissing(f"{source}: metric {name!r} has no finite value")
    return Curve(label=label, points=points)


def draw(curves: Sequence[Curve], name: str, *, width: int = 80, height: int = 16, color: bool = False) -> str:
    """The curves over each other on common axes, as text of at most ``width`` columns, with a legend."""
    steps = [step for curve in curves for step, _ in curve.points]
    values = [value for curve in curves for _, value in curve.points]
    left, right = min(steps), max(steps)
    low, high = _padded(min(values), max(values))
    ticks = [f"{high - (high - low) * row / (height - 1):.4g}" for row in range(height)]
    margin = max(map(len, ticks))
    canvas = Canvas(max(8, width - margin - 2), height)
    dots_x, dots_y = 2 * canvas.columns - 1, 4 * canvas.rows - 1

    def place(step: int, value: float) -> tuple[int, int]:
        across = 0.5 if right == left else (step - left) / (right - left)
        return round(across * dots_x), round((high - value) / (high - low) * dots_y)

    for owner, curve in enumerate(curves):
        dots = [place(*point) for point in curve.points]
        for start, end in itertools.pairwise(dots):
            canvas.line(start, end, owner)
        if len(dots) <= canvas.columns // 2:  # single points stand out as long as they don't hide the line
            for dot in dots:
                canvas.sign(*dot, _SIGNS[owner % len(_SIGNS)], owner)
    colors = _COLORS if color else None
    marked = {0, height - 1, *range(0, height, 4)}
    body = [
        f"{tick if row in marked else '':>{margin}} {'┤' if row in marked else '│'}{line}".rstrip()
        for row, (tick, line) in enumerate(zip(ticks, canvas.lines(colors), strict=True))
    ]
    first, last = str(left), str(right)
    gap = canvas.columns - len(first) - len(last)
    foot = [f"{'':>{margin}} └{'─' * canvas.columns}", f"{'':>{margin}}  {first}{'step':^{max(6, gap)}}{last}"]
    return "\n".join([escape.one_line(name), *body, *foot, *_legend(curves, color)]) + "\n"


def save_png(curves: Sequence[Curve], name: str, path: str) -> None:
    """The same picture as a PNG. Raises ``EnvironmentMissing`` without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        raise EnvironmentMissing("--png needs matplotlib", hint="pip install matplotlib") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 5))
    for curve in curves:
        axes.plot(*zip(*curve.points, strict=True), marker="o", markersize=3, label=curve.label.replace("$", r"\$"))
    axes.set(xlabel="step", ylabel=name.replace("$", r"\$"))
    axes.grid(alpha=0.3)
    axes.legend()
    try:
        figure.savefig(path, format="png", dpi=120)
    except OSError as error:
        raise OutputConflict(f"{path}: can't write the picture: {error.strerror}") from error
    finally:
        pyplot.close(figure)


def _padded(low: float, high: float) -> tuple[float, float]:
    """A range of some height, also for a constant."""
    if high > low:
        return low, high
    room = abs(low) * 0.1 or 1.0
    return low - room, high + room


def _legend(curves: Sequence[Curve], color: bool) -> list[str]:
    lines = []
    for owner, curve in enumerate(curves):
        sign = _SIGNS[owner % len(_SIGNS)]
        sign = f"{_COLORS[owner % len(_COLORS)]}{sign}\x1b[0m" if color else sign
        values = [value for _, value in curve.points]
        lines.append(
            f"  {sign} {escape.one_line(curve.label)}: first {values[0]:.4g}, last {values[-1]:.4g}, "
            f"{len(values)} steps"
        )
    return lines
