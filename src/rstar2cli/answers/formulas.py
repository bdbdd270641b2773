"""Values as LaTeX and as relations, and what letters stand in a formula."""

from __future__ import annotations

import re

from rstar2cli.answers.numbers import latex
from rstar2cli.answers.values import Named, Number, Relation, Value

_NO_VARIABLE = re.compile(
    r"\\(?:text|mathrm)\{[^{}]*\}"
    r"|\\(?:frac|sqrt|pi|infty|cdot|times|div|sin|cos|tan|cot|sec|csc|ln|log|exp|arc\w+|binom|circ)(?![A-Za-z])"
)


def as_latex(value: Value) -> str:
    """A value as LaTeX; numbers exactly."""
    return latex(value) if isinstance(value, Number) else value.source


def as_relation(named: Named) -> Relation:
    """``x = 5`` as an equation."""
    return Relation(named.source, (named.name, as_latex(named.value)), ("=",))


def turned(sign: str) -> str:
    """An order sign read from right to left."""
    return {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(sign, sign)


def variables(source: str) -> set[str]:
    """Variables of a formula: single letters and Greek ones, without e, i and commands."""
    bare = _NO_VARIABLE.sub(" ", source)
    return set(re.findall(r"\\[A-Za-z]+|[A-Za-z]", bare)) - {"e", "i"}
