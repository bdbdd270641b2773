"""An output that would take the place of its own input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rstar2cli.core.errors import OutputConflict
from rstar2cli.core.reading import reading
from rstar2cli.shards.atomic import telling
from rstar2cli.shards.manifest import CONFIG, REJECTS
from rstar2cli.shards.resolve import resolve


def refuse_own_input(inputs: Sequence[str], outputs: Sequence[str], *, model: str | None = None) -> None:
    """Raise :class:`OutputConflict` if an input is one of the outputs, or lies inside one, whatever it is called.

    ``inputs`` as stages take them: names of generators, hub sets and ``NAME:FILE`` too. Raises what
    :func:`rstar2cli.shards.resolve.resolve` does for inputs that can't be read.
    """
    there = []
    for out in outputs:
        with telling(out):
            if out != "-" and Path(out).exists():
                there.append((out, Path(out).resolve()))
    if not there:
        return
    with reading("input"):
        for name, path in _read(inputs, model):
            for out, place in there:
                if path == place or place in path.parents:
                    what = f"is also the input {name}" if path == place else f"the input {name} lies in it"
                    raise OutputConflict(
                        f"{out}: {what}, and would be lost", hint="write to another OUT, then remove the old one"
                    )


def sidecars(out: str) -> list[str]:
    """What is written beside a single file."""
    return [f"{out}.{name}" for name in (CONFIG, REJECTS)]


def _read(inputs: Sequence[str], model: str | None) -> Iterator[tuple[str, Path]]:
    """Name and real path of all that is read and is there."""
    if model is not None and Path(model).exists():
        yield model, Path(model).resolve()
    for name in inputs:
        yield from ((name, path.resolve()) for path in _places(name) if path.exists())


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
