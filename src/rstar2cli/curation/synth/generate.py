"""Problems from families: which, in which order, and on which side of the split."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from typing import Literal

from rstar2cli.core.seeds import generator
from rstar2cli.curation.synth.family import Family, Params
from rstar2cli.curation.synth.registry import FAMILIES
from rstar2cli.records import Problem

Split = Literal["train", "heldout"]
_HELDOUT_ONE_IN = 5
_DRAWS_BEFORE_EXHAUSTED = 2000


def canonical(params: Params) -> str:
    """Parameters as text, the same for every order of the names: `a=3,b=5`."""
    return ",".join(f"{name}={params[name]}" for name in sorted(params))


def split_of(family: str, params: Params) -> Split:
    """The side of the split, from family and parameters alone; one in five is held out.

    Neither seed nor phrasing enters, so no parameter set is ever on both sides.
    """
    text = f"{family}\0{canonical(params)}"
    digest = hashlib.blake2b(text.encode(), digest_size=8, person=b"rstar2-split").digest()
    return "heldout" if int.from_bytes(digest, "big") % _HELDOUT_ONE_IN == 0 else "train"


def make_problem(family: Family, params: Params, phrasing: int) -> Problem:
    """The problem of a parameter set in one phrasing. Raises ``CrossCheckError`` if its two methods disagree."""
    side = split_of(family.name, params)
    values = "-".join(str(value) for value in params.values())
    return Problem(
        id=f"synth:{family.name}/{values}.{phrasing}",
        source=f"synth:{family.name}",
        prompt=family.fill(family.phrasings[phrasing], params),
        answer=str(family.solve(params)),
        tags=[family.topic, side],
        extra={"family": family.name, "params": dict(params), "split": side, "phrasing": phrasing},
    )


def generate(*, seed: int, split: Split | Literal["all"], families: Sequence[str] = ()) -> Iterator[Problem]:
    """Problems without end, balanced over the families, no parameter set twice.

    Each round asks every family once, in an order drawn for that round; so a shorter
    output is a prefix of a longer one. A family whose parameters are used up drops out.
    Raises ``KeyError`` for a name that is no family.
    """
    streams = {name: _family_stream(FAMILIES[name], seed, split) for name in families or FAMILIES}
    number = 0
    while streams:
        order = list(streams)
        generator(seed, "synth-order", number).shuffle(order)
        for name in order:
            problem = next(streams[name], None)
            if problem is None:
                del streams[name]
            else:
                yield problem
        number += 1


def _family_stream(family: Family, seed: int, split: str) -> Iterator[Problem]:
    """Problems of one family, its phrasings in shuffled rounds."""
    rng = generator(seed, "synth", family.name)
    seen: set[str] = set()
    phrasings: list[int] = []
    misses = 0
    while misses < _DRAWS_BEFORE_EXHAUSTED:
        params = family.draw(rng)
        key = canonical(params)
        if key in seen or split not in ("all", split_of(family.name, params)):
            misses += 1
            continue
        seen.add(key)
        misses = 0
        phrasings = phrasings or _shuffled(len(family.phrasings), seed, family.name, len(seen))
        yield make_problem(family, params, phrasings.pop())


def _shuffled(count: int, *key: int | str) -> list[int]:
    rng: random.Random = generator("phrasing", *key)
    order = list(range(count))
    rng.shuffle(order)
    return order
