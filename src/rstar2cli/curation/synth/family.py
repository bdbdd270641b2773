"""What a family of problems is: parameters, phrasings, two ways to the answer, programs, reasonings."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from string import Template

Params = dict[str, int]
"""Parameters of a problem by name, in the order that the family draws them."""


class CrossCheckError(RuntimeError):
    """The two methods of a family disagree: a fault of the family, never of the data."""


def no_words(_: Params) -> dict[str, str]:
    """The words of a family whose texts need its parameters alone."""
    return {}


@dataclass(frozen=True, kw_only=True)
class Family:
    """Problems of one kind. All texts are ``string.Template`` over the parameters and ``words``."""

    name: str
    """Name in ids and sources: letters, digits and `_`."""
    topic: str
    """Topic, as the tag of its problems."""
    draw: Callable[[random.Random], Params]
    """One parameter set, in canonical form: two sets that mean the same problem are equal."""
    answer: Callable[[Params], int]
    """The answer."""
    check: Callable[[Params], int]
    """The answer again, by a method that shares nothing with the first."""
    phrasings: tuple[str, ...]
    """Ways to ask; the prompt of a problem."""
    programs: tuple[str, ...]
    """Short Python programs that print the answer and nothing else."""
    reasons: tuple[str, ...]
    """What a solver says before the program."""
    words: Callable[[Params], dict[str, str]] = no_words
    """Further words of the texts, derived from the parameters (names of weekdays, parities)."""

    def solve(self, params: Params) -> int:
        """The answer, computed both ways. Raises ``CrossCheckError`` if they differ."""
        first, second = self.answer(params), self.check(params)
        if first != second:
            raise CrossCheckError(f"{self.name} {params}: {first} by the first method, {second} by the second")
        return first

    def fill(self, template: str, params: Params) -> str:
        """A text of the family with its parameters and words filled in."""
        return Template(template).substitute({**params, **self.words(params)})
