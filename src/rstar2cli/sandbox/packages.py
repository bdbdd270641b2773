"""The named list of packages that code may import: where their files lie on this host."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

_NAME = re.compile(r"[A-Za-z0-9._-]+")


def find(names: Iterable[str]) -> list[tuple[str, str]]:
    """(name in site-packages, path) of what these distributions, and those that they need, have installed.

    Distributions that are not installed are left out.
    """
    found: dict[str, str] = {}
    seen: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        if name in seen:
            continue
        seen.add(name)
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        found.update(_entries(distribution))
        waiting += _needs(distribution)
    return sorted(found.items())


def _entries(distribution: metadata.Distribution) -> dict[str, str]:
    tops = {file.parts[0] for file in distribution.files or []}
    entries = {}
    for top in tops:
        path = Path(str(distribution.locate_file(top)))
        ours = top in ("..", "bin", "__pycache__") or top.endswith((".dist-info", ".egg-info", ".pth"))
        if not ours and path.exists():
            entries[top] = str(path.resolve())
    return entries


def _needs(distribution: metadata.Distribution) -> list[str]:
    """Names of what it needs, extras aside."""
    needs = []
    for requirement in distribution.requires or []:
        name = _NAME.match(requirement)
        if name and not re.search(r"\bextra\s*==", requirement):
            needs.append(name[0])
    return needs
