"""Where the ready experiments are: ``commands/`` of a source checkout, or their packaged copy."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from rstar2cli.core.errors import EnvironmentMissing, UsageError

_PACKAGE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One experiment."""

    name: str
    """Name of its script without the ending, folders included (`rstar2-14b`)."""
    script: Path
    """The script."""
    summary: str
    """First line of the comment that it begins with."""

    @property
    def settings(self) -> Path:
        """Folder of its TOML files; may not exist."""
        return self.script.with_suffix("")


def directory() -> Path:
    """The folder of the experiments. Raises ``EnvironmentMissing`` if the installation has none."""
    checkout = _PACKAGE.parents[1]
    if (checkout / "pyproject.toml").is_file() and (checkout / "commands").is_dir():
        return checkout / "commands"
    if (_PACKAGE / "_commands").is_dir():
        return _PACKAGE / "_commands"
    raise EnvironmentMissing(f"{_PACKAGE}: no experiments in this installation", hint="install rstar2cli again")


def recipes() -> list[Recipe]:
    """All experiments, by name."""
    root = directory()
    found = []
    for script in sorted(root.rglob("*.sh")):
        name = script.relative_to(root).with_suffix("").as_posix()
        found.append(Recipe(name=name, script=script, summary=_summary(script)))
    return found


def recipe(name: str) -> Recipe:
    """The experiment of this name. Raises ``UsageError`` with the nearest known name."""
    known = {entry.name: entry for entry in recipes()}
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else "list them with: rstar2 recipe ls"
        raise UsageError(f"no recipe {name!r}", hint=hint)
    return known[name]


def _summary(script: Path) -> str:
    comments = (line for line in script.read_text(encoding="utf-8").splitlines() if line.startswith("# "))
    return next(comments, "").removeprefix("# ")
