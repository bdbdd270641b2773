"""An output that would take the place of its own input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rstar2cli.core.errors import OutputConflict
from rstar2cli.shards.manifest import CONFIG, REJECTS
from rstar2cli.shards.resolve import resolve


def refuse_own_input(inputs: Sequence[str], outputs: Sequence[str], *, model: str | None = None) -> None:
    """Raise :class:`OutputConflict` if an input is one of the outputs, or lies inside one, whatever it is called.

    ``inputs`` as stages take them: names of generators, hub sets and ``NAME:FILE`` too. Raises what
    :func:`rstar2cli.shards.resolve.resolve` does for inputs that can't be read.
    """
    there = [(out, Path(out).resolve()) for out in outputs if out != "-" and Path(out).exists()]
    if not there:
        return
    read = [(name, path) for name in inputs for path in _places(name)]
    if model is not None:
        read.append((model, Path(model)))
    for name, path in read:
        if path.exists():
            real = path.resolve()
            for out, place in there:
                if real == place or place in real.parents:
                    what = f"is also the input {name}" if real == place else f"the input {name} lies in it"
                    raise OutputConflict(
                        f"{out}: {what}, and would be lost", hint="write to another OUT, then remove the old one"
                    )


def sidecars(out: str) -> list[str]:
    """What is written beside a single file."""
    return [f"{out}.{name}" for name in (CONFIG, REJECTS)]


def _places(name: str) -> Iterator[Path]:
    """The path that a name stands for, then the files that are read."""
    if name == "-":
        return
    path = Path(name)
    if not path.exists() and ":" in name:
        yield Path(name.partition(":")[2] or name)
        return
    yield path
    yield from (source.path for source in resolve([name]))
