"""Arguments ``name=DIR``: a directory with the name it goes by in tables and legends."""

from __future__ import annotations

from pathlib import Path

from rstar2cli.core.errors import UsageError


def labelled(arguments: list[str]) -> list[tuple[str, str]]:
    """(label, source) of each argument; without a name the shortest tail of the path that is unique.

    An existing path with ``=`` in its name is a path. Raises ``UsageError`` for a name given twice.
    """
    pairs: list[tuple[str | None, str]] = []
    for argument in arguments:
        name, equals, rest = argument.partition("=")
        named = bool(equals and name and rest) and not Path(argument).exists()
        pairs.append((name, rest) if named else (None, argument))
    sources = [source for label, source in pairs if label is None]
    labels = [label or _tail(source, sources) for label, source in pairs]
    twice = {label for label in labels if labels.count(label) > 1}
    if twice:
        raise UsageError(f"several inputs are called {sorted(twice)[0]!r}", hint="give names: name=DIR other=DIR")
    return [(label, source) for label, (_, source) in zip(labels, pairs, strict=True)]


def _tail(source: str, sources: list[str]) -> str:
    parts = Path(source).parts
    for length in range(1, len(parts) + 1):
        tail = parts[-length:]
        if sum(Path(other).parts[-length:] == tail for other in sources) == 1:
            return "/".join(tail)
    return source
