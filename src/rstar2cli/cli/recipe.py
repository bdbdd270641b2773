"""``rstar2 recipe``: the packaged experiments."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from rstar2cli.cli import recipes
from rstar2cli.cli.help import epilog, examples
from rstar2cli.cli.options import FormatOption, Overwrite
from rstar2cli.cli.output import emit
from rstar2cli.core.errors import OutputConflict

app = typer.Typer(
    help="List and copy the packaged experiments: shell scripts of rstar2 commands, with their settings.",
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
)


@examples("rstar2 recipe ls", "rstar2 recipe ls --format json")
def ls(format: FormatOption = "auto") -> None:
    """List the experiments."""
    emit(
        [{"name": entry.name, "summary": entry.summary, "script": str(entry.script)} for entry in recipes.recipes()],
        format,
    )


@examples("rstar2 recipe cp smoke experiments/", "bash experiments/smoke.sh")
def cp(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name from rstar2 recipe ls.")],
    destination: Annotated[str, typer.Argument(metavar="DIR", help="Directory to copy into; made if absent.")],
    overwrite: Overwrite = False,
) -> None:
    """Copy an experiment and its settings, to change them; prints the path of the script."""
    entry = recipes.recipe(name)
    script = Path(destination) / entry.script.name
    settings = script.with_suffix("")
    taken = [path for path in (script, settings) if path.exists()]
    if taken and not overwrite:
        raise OutputConflict(f"{taken[0]}: exists", hint="replace it with --overwrite, or copy elsewhere")
    script.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(entry.script, script)
    if entry.settings.is_dir():
        shutil.copytree(entry.settings, settings, dirs_exist_ok=True)
    print(script)


app.command("ls", epilog=epilog(ls))(ls)
app.command("cp", epilog=epilog(cp))(cp)
