"""``rstar2 smoke``: run the packaged ``commands/smoke.sh``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from rstar2cli.cli import recipes
from rstar2cli.cli.help import examples
from rstar2cli.cli.options import Seed
from rstar2cli.core.errors import EnvironmentMissing

Quick = Annotated[bool, typer.Option("--quick", help="Tiny sizes, only to see that everything connects.")]
Out = Annotated[
    str | None,
    typer.Option("--out", "-o", metavar="DIR", help="Where everything goes (default: runs/smoke or runs/smoke-quick)."),
]
Again = Annotated[bool, typer.Option("--resume/--overwrite", help="Go on where an earlier run stopped, or begin anew.")]


@examples("rstar2 smoke", "rstar2 smoke --quick", "rstar2 smoke --seed 1 -o runs/smoke-1")
def main(quick: Quick = False, seed: Seed = 0, out: Out = None, resume: Again = True) -> None:
    """Run the whole recipe on this machine: problems, SFT, rollouts, GRPO-RoC, evaluation.

    Runs commands/smoke.sh, each line of which is one rstar2 command; progress goes to stderr, the
    result table to stdout and to DIR/summary.json. The exit code is that of the stage that failed.
    """
    run = out or ("runs/smoke-quick" if quick else "runs/smoke")
    settings = {"RUN": run, "SEED": str(seed), "QUICK": "1" if quick else "", "OVERWRITE": "" if resume else "1"}
    code = _run(recipes.recipe("smoke").script, settings)
    if code:
        raise typer.Exit(code)


def _run(script: Path, settings: dict[str, str]) -> int:
    """The script's exit code. Ctrl-C and SIGTERM reach the stage that runs, which drains and saves."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])  # our own rstar2 first
    environment = {**os.environ, **settings, "PATH": path}
    try:
        child = subprocess.Popen(["bash", str(script)], env=environment, process_group=0)
    except FileNotFoundError as error:
        raise EnvironmentMissing("smoke needs bash", hint="install bash") from error

    def forward(number: int, _: FrameType | None) -> None:
        os.killpg(child.pid, number)

    before = {number: signal.signal(number, forward) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        code = child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return code if code >= 0 else 128 - code
