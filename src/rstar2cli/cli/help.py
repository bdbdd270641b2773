"""The lines to copy that end every command's ``--help``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def examples(*lines: str) -> Callable[[F], F]:
    """Attach command lines that the help ends with."""

    def attach(function: F) -> F:
        function.examples = lines  # type: ignore[attr-defined]
        return function

    return attach


def epilog(function: Callable[..., Any]) -> str:
    """The closing block of the help text of a command function."""
    lines: tuple[str, ...] = getattr(function, "examples", ())
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
