"""Limits on a formula, checked on its text before any parser sees it."""

from __future__ import annotations

import re
from typing import Literal

from rstar2cli.answers import scan
from rstar2cli.answers.arithmetic import evaluate
from rstar2cli.answers.spelling import FUNCTIONS

MAX_FORMULA = 500
"""Characters of a formula; the parser's time grows with them faster than in proportion."""
MAX_DEPTH = 20
MAX_BARS = 12
MAX_RELATIONS = 10
MAX_DIGITS = 400
MAX_EXPONENT = 10_000
MAX_FACTORIAL = 5_000
MAX_SCRIPTS = 3
"""Deepest nesting of exponents: x^{y^{z^{2}}}."""
MAX_MATRIX_CELLS = 64

_CHARACTERS = re.compile(r"[A-Za-z0-9\s+\-*/^_(){}\[\]|!.,:;=<>&\\'%]*")
_LONG_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{5,}")
_DIGITS = re.compile(rf"\d{{{MAX_DIGITS + 1},}}")
_COMMANDS = frozenset(
    [
        *FUNCTIONS,
        "frac",
        "sqrt",
        "cdot",
        "times",
        "div",
        "pm",
        "pi",
        "e",
        "infty",
        "alpha",
        "beta",
        "gamma",
        "delta",
        "epsilon",
        "zeta",
        "eta",
        "theta",
        "iota",
        "kappa",
        "lambda",
        "mu",
        "nu",
        "xi",
        "rho",
        "sigma",
        "tau",
        "upsilon",
        "phi",
        "chi",
        "psi",
        "omega",
        "Gamma",
        "Delta",
        "Theta",
        "Lambda",
        "Xi",
        "Pi",
        "Sigma",
        "Phi",
        "Psi",
        "Omega",
        "coth",
        "arsinh",
        "arcosh",
        "artanh",
        "lg",
        "binom",
        "choose",
        "lfloor",
        "rfloor",
        "lceil",
        "rceil",
        "lvert",
        "rvert",
        "sum",
        "prod",
        "int",
        "lim",
        "to",
        "ldots",
        "begin",
        "end",
        "overline",
        "vec",
        "hat",
        "bar",
        "text",
        "mathrm",
        "det",
        "circ",
        "prime",
        "ell",
        "hbar",
        "dot",
        "ddot",
        "operatorname",
        "bmod",
        "pmod",
        "mod",
    ]
)
_RELATION = re.compile(r"[=<>]|\\(?:le|ge|neq)(?![a-z])")
_COMMAND = re.compile(r"\\([A-Za-z]+)")
_FACTORIAL = re.compile(r"(\d+) ?!")
_NESTED_FACTORIAL = re.compile(r"![\s)}\]]*[)}\]][\s)}\]]*!|!!!")
_BOUND = re.compile(r"\\(?:sum|prod)\b[^^]*\^ ?\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}")
_BINOMIAL = re.compile(r"\\binom ?\{((?:[^{}]|\{[^{}]*\})*)\}")
MAX_TERMS = 100_000


def refusal(cleaned: str) -> Literal["unparseable", "over_cap"] | None:
    """Why a cleaned formula must not be parsed; null if it may.

    `over_cap`: too deep, too many digits, or a number in it that would be too large to compute.
    `unparseable`: characters, words or commands that are not mathematics.
    """
    if len(cleaned) > MAX_FORMULA or cleaned.count("|") > MAX_BARS or len(_RELATION.findall(cleaned)) > MAX_RELATIONS:
        return "over_cap"
    if scan.depth(cleaned) > MAX_DEPTH or _DIGITS.search(cleaned) or not _exponents_fit(cleaned):
        return "over_cap"
    if any(len(m[1]) > 6 or int(m[1]) > MAX_FACTORIAL for m in _FACTORIAL.finditer(cleaned)):
        return "over_cap"
    if _NESTED_FACTORIAL.search(cleaned) or cleaned.count("&") + cleaned.count("\\\\") > MAX_MATRIX_CELLS:
        return "over_cap"
    for pattern, most in ((_BOUND, MAX_TERMS), (_BINOMIAL, 10_000)):
        for match in pattern.finditer(cleaned):
            if not _at_most(match[1], most):
                return "over_cap"
    if not _CHARACTERS.fullmatch(cleaned) or _LONG_WORD.search(_without_text(cleaned)):
        return "unparseable"
    if any(name not in _COMMANDS for name in _COMMAND.findall(cleaned)) or not scan.balanced(cleaned):
        return "unparseable"
    return None


def _without_text(cleaned: str) -> str:
    return re.sub(r"\\(?:begin|end) ?\{[a-z]*\}", " ", cleaned)


def _at_most(text: str, most: int) -> bool:
    """Whether a text is a number up to ``most``, or no plain number at all."""
    if re.search(r"[A-Za-z]", _COMMAND.sub("", text)):
        return True
    value = evaluate(text)
    return abs(value) <= most if value is not None else "\\" in text


def _exponents_fit(cleaned: str) -> bool:
    """No tower of numbers, no exponent past the cap, and none deeper than ``MAX_SCRIPTS``."""
    if _nesting(cleaned) > MAX_SCRIPTS:
        return False
    for at, char in enumerate(cleaned):
        if char != "^":
            continue
        exponent = _script(cleaned, at + 1)
        if not re.search(r"[A-Za-z]", exponent) and not _at_most(exponent.strip("{} "), MAX_EXPONENT):
            return False
        after = at + 1 + len(exponent)
        if cleaned[after : after + 1] == "^":
            return False  # a double superscript reads as a tower
    return True


def _script(text: str, at: int) -> str:
    depth = 0
    for end in range(at, len(text)):
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        if depth == 0 and text[end] != " ":
            return text[at : end + 1]
    return text[at:]


def _nesting(text: str) -> int:
    """How deep exponents stand in exponents: 1 for x^{2}, 2 for x^{y^{2}}."""
    opened: list[bool] = []
    deepest = 0
    for at, char in enumerate(text):
        if char == "{":
            opened.append(text[:at].rstrip().endswith("^"))
            deepest = max(deepest, sum(opened))
        elif char == "}" and opened:
            opened.pop()
    return deepest
