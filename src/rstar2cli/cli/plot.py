"""``rstar2 plot``: the curve of a metric."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from rstar2cli.cli.help import examples
from rstar2cli.cli.labels import labelled
from rstar2cli.cli.options import OverwriteFile
from rstar2cli.cli.output import width

Runs = Annotated[
    list[str],
    typer.Argument(metavar="RUN...", help="Run directories or files of metric records; name=RUN gives a label."),
]
Name = Annotated[str, typer.Option("--metric", "-y", metavar="NAME", help="Metric to draw.")]
Png = Annotated[str | None, typer.Option("--png", metavar="FILE", help="Write a PNG instead (needs matplotlib).")]
Height = Annotated[int, typer.Option("--height", min=4, max=200, help="Lines of the plot.")]
Width = Annotated[
    int | None, typer.Option("--width", min=30, max=1000, help="Columns of the plot (default: the terminal's, or 80).")
]


@examples("rstar2 plot runs/smoke/rl -y reward", "rstar2 plot a=runs/a b=runs/b -y tool_error_share --png both.png")
def main(
    runs: Runs,
    name: Name = "reward",
    png: Png = None,
    overwrite: OverwriteFile = False,
    height: Height = 16,
    columns: Width = None,
) -> None:
    """Draw a metric over the steps of one or several runs, over each other, in the terminal."""
    from rstar2cli.shards.atomic import check_new
    from rstar2cli.views.plot import draw, read_curve, save_png

    if png:
        check_new(png, overwrite=overwrite)
    curves = [read_curve(label, source, name) for label, source in labelled(runs)]
    if png:
        save_png(curves, name, png)
        print(png)
        return
    terminal = width()
    sys.stdout.write(draw(curves, name, width=columns or terminal or 80, height=height, color=terminal is not None))
