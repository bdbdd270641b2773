"""Problems of the built-in generator: ``synth:`` or ``synth:family,family``."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import Literal

from rstar2cli.core.errors import UsageError
from rstar2cli.curation.synth.generate import generate
from rstar2cli.curation.synth.registry import FAMILIES
from rstar2cli.records import Problem

PREFIX = "synth:"


def chosen_families(name: str, configured: Sequence[str]) -> tuple[str, ...]:
    """Families that the input's name asks for, else the configured ones, else all. Raises ``UsageError``."""
    asked = tuple(part for part in name.removeprefix(PREFIX).split(",") if part) or tuple(configured)
    for family in asked:
        if family not in FAMILIES:
            close = difflib.get_close_matches(family, list(FAMILIES), n=1)
            nearest = f"; did you mean {close[0]!r}?" if close else ""
            raise UsageError(f"{name}: no family {family!r}{nearest}", hint=f"families: {', '.join(FAMILIES)}")
    return tuple(dict.fromkeys(asked)) or tuple(FAMILIES)


def synth_problems(
    name: str, *, families: Sequence[str], seed: int, split: Literal["train", "heldout", "all"]
) -> Iterator[Problem]:
    """Problems without end until the parameters are used up."""
    return generate(seed=seed, split=split, families=chosen_families(name, families))
