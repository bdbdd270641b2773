"""The errors that rooms raise and the exit codes that the command line gives them.

A message says what happened and where; the hint says what to do. Neither holds
secrets or local variables. Anything that is not one of these is a bug (exit 70).
"""

from __future__ import annotations


class RstarError(Exception):
    """Base of all expected failures: ``message`` (what and where) and ``hint`` (what to do)."""

    exit_code = 70

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message


class CheckFailed(RstarError):
    """A check or comparison gave "no" (exit 1)."""

    exit_code = 1


class UsageError(RstarError):
    """Wrong options or configuration (exit 2)."""

    exit_code = 2


class DataError(RstarError):
    """Bad input data (exit 3)."""

    exit_code = 3


class InputMissing(RstarError):
    """An input is missing or incomplete (exit 4)."""

    exit_code = 4


class OutputConflict(RstarError):
    """The output exists, is locked or can't be written (exit 5)."""

    exit_code = 5


class EnvironmentMissing(RstarError):
    """No engine, device, sandbox, package, memory or disk (exit 6)."""

    exit_code = 6


class Stopped(RstarError):
    """Stopped part-way but resumable: drained after a signal, or too many losses (exit 7)."""

    exit_code = 7

    def __init__(self, message: str, *, hint: str | None = None, resumable: bool = True) -> None:
        super().__init__(message, hint=hint)
        self.resumable = resumable
        """Whether there is something to go on from; a stage says no where its output keeps nothing."""
        self._kept = ""

    def tell_kept(self, what: str) -> None:
        """Add what is saved of the work, once: the writer nearest to it knows best."""
        if not self._kept:
            self._kept = what
            self.message = f"{self.message}; {what}"
