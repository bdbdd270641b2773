r"""From a cleaned formula to a sympy expression, by latex2sympy2_extended behind the caps.

The text is only ever read by that LaTeX parser: nothing of it reaches eval, sympify or parse_expr.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Any

import sympy
from antlr4.atn.PredictionMode import PredictionMode
from latex2sympy2_extended.latex2sympy2 import ConversionConfig, _Latex2Sympy

from rstar2cli.answers import caps
from rstar2cli.answers.algebra import Unreadable
from rstar2cli.answers.spelling import clean

_GROUPED = re.compile(r"\s*-?\d{1,3}(,\d{3})+\s*")
_DECIMAL = re.compile(r"(?<![\d.])(\d*)\.(\d+)(?![\d.])")
_TRAILING_POINT = re.compile(r"(\d)\.(?!\d)")
_DEGREES = re.compile(r"(\d+|\)|\}) ?\^ ?\{ ?\\circ ?\}")
_MIXED = re.compile(r"(?<![\d}^_.])(\d+) ?\\frac ?\{ ?(\d+) ?\} ?\{ ?(\d+) ?\}")
_BEFORE_FRACTION = re.compile(r"(?<=[\d)]) ?(?=\\frac)")
_BEFORE_GROUP = re.compile(r"(?<=\d) ?(?=\()")
_TEXT = re.compile(r"\\(?:text|mathrm) ?\{ ?\(?([A-Za-z]+)\)? ?\}")
_OTHER_TEXT = re.compile(r"\\text ?\{[^{}]*\}")
_PRIMED_NUMBER = re.compile(r"\d ?'")
_PRIMED = re.compile(r"(?<![\\A-Za-z])([A-Za-z])('+)( ?\()?")
_IMAGINARY = re.compile(r"(\\[A-Za-z]+|_\{[^{}]*\})|I")
"""A capital I, outside of commands and of what stands below a letter: the parser's imaginary unit, others' current."""
_GAMMA = re.compile(r"\\gamma(?![A-Za-z])|\\Gamma(?![A-Za-z]| ?\()")
"""The parser's Gamma function, even of nothing."""
_EXPECTED = re.compile(r"(?<![\\A-Za-z])E(?= ?[(\[])")
_MATRIX_PRODUCT = re.compile(r"[A-Z] ?\^ ?\{ ?(?:-1|T|\\top) ?\}")
_CAPITAL = re.compile(r"(?<![\\A-Za-z])[A-Z](?![a-z])")
_BRACED = re.compile(r"\\\{")
_SLASHED = re.compile(r"(?<![\w.}^)/*]) ?(\d+) ?/ ?(\d+)(?= ?(?:\\(?:pi|sqrt|sin|cos|tan|ln|log)\b|[A-Za-z(]))")
"""1/2 x is half of x."""
_GREEK = r"\\(?:alpha|beta|delta|epsilon|eta|theta|lambda|mu|nu|rho|sigma|tau|phi|psi|omega|pi)(?![A-Za-z])"
_BASE = re.compile(
    rf"({_GREEK}(?= ?\^))|\\[A-Za-z]+|_ ?\{{[^{{}}]*\}}|([A-DF-Za-df-z])(?= ?\^)(?! ?\^ ?\{{ ?-1 ?\}} ?\()"
)
"""What is raised to a power, but for e and an inverse function."""
_INDEXED = re.compile(rf"(?:{_GREEK}|(?<![\\A-Za-z])[A-Za-z])_\{{ ?\w+ ?\}}(?! ?[\^({{_'!])")
_VECTORS = re.compile(r"\\(?:vec|hat|bar)(?![A-Za-z])")
_NAMED_E = re.compile(r"(?<![\\A-Za-z])([eE])_\{ ?([A-Za-z0-9]+) ?\}")
_ACCENT = re.compile(r"\\(dot|ddot) ?\{ ?([A-Za-z]) ?\}(?:_\{[^{}]*\})?")
_CONFIG = ConversionConfig(lowercase_symbols=False)


class _Parser(_Latex2Sympy):  # type: ignore[misc]
    """The library's parser with exact numbers; its own hands the digits to sympify."""

    def __init__(self, mode: int) -> None:
        """``mode``: how far ANTLR's parser looks around it to decide."""
        super().__init__(config=_CONFIG)
        self._mode = mode

    def create_parser(self, latex_str: str) -> Any:
        """The parser of the grammar, in the mode asked for."""
        parser = super().create_parser(latex_str)
        parser._interp.predictionMode = self._mode
        return parser

    def parse_number(self, text: str) -> sympy.Rational:
        """Digits as an exact number. Raises ``ValueError`` for what is none."""
        value = Fraction(text.replace(",", ""))
        return sympy.Rational(value.numerator, value.denominator)

    def handle_gcd_lcm(self, f: str, args: list[Any]) -> Any:
        """A gcd or lcm that is not computed: the library takes that of polynomials, which for m and n is 1."""
        return sympy.Function(f)(*args)


@lru_cache(maxsize=2048)
def parse(text: str) -> sympy.Basic:
    """The expression that a formula writes, evaluated as little as the parser allows.

    Raises ``Unreadable``: the text is over a cap, or not a formula.
    """
    cleaned = clean(text)
    refusal = caps.refusal(cleaned)
    if refusal is not None:
        raise Unreadable(text, refusal)
    prepared = _prepared(cleaned)
    expression = None
    # What the fast mode can read means the same in the full one, which takes ten times as long.
    for mode in (PredictionMode.SLL, PredictionMode.LL):
        try:
            expression = _Parser(mode).parse(prepared)
            break
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 - the parser raises bare Exceptions, and what sympy raises on nonsense
            continue
    if not isinstance(expression, sympy.Basic | sympy.MatrixBase):
        raise Unreadable(text)
    return expression


def _prepared(text: str) -> str:
    """What the parser gets wrong or as a float, written so that it gets it right."""
    if _GROUPED.fullmatch(text):
        return text.replace(",", "")
    if _OTHER_TEXT.search(_TEXT.sub("", text)):
        raise Unreadable(text)
    text = _TEXT.sub(lambda match: match[1] if len(match[1]) == 1 else f"x_{{{match[1]}}}", text)
    if _PRIMED_NUMBER.search(text) or _two_meanings(text):
        raise Unreadable(text)
    text = _PRIMED.sub(_primed, text)
    text = _IMAGINARY.sub(lambda match: match[1] or "x_{imaginary}", text)
    text = _GAMMA.sub(lambda match: f"x_{{{match[0][1:]}}}", text)
    text = _EXPECTED.sub("f_{expected}", text)
    text = re.sub(r"\\pi ?\(", r"\\pi \\cdot (", text)  # never the counting of primes
    text = _SLASHED.sub(r" \\frac{\1}{\2} ", text)
    # the parser's fast mode waits for _ after a letter before ^, and for ^ after x_1
    text = _INDEXED.sub(r"\g<0>^{1}", text)
    text = _BASE.sub(lambda match: f"{{{match[0]}}}" if match[1] or match[2] else match[0], text)
    if "matrix" not in text:
        text = text.replace("^{T}", "^{(T)}")  # the parser would drop the transposition of a letter
    text = _NAMED_E.sub(r"x_{\1\2}", text)
    text = _ACCENT.sub(lambda match: f"x_{{{match[1]}{match[2]}}}", text).replace("\\hbar", "x_{hbar}")
    text = _DECIMAL.sub(lambda m: rf"\frac{{{int(m[1] + m[2])}}}{{{10 ** len(m[2])}}}", text)
    text = _TRAILING_POINT.sub(r"\1", text)
    text = _DEGREES.sub(r"\1 \\cdot \\frac{\\pi}{180}", text)
    text = _MIXED.sub(_mixed, text)
    text = _BEFORE_FRACTION.sub(r" \\cdot ", text)
    text = _BEFORE_GROUP.sub(r" \\cdot ", text)
    text = re.sub(r"\\lg(?![A-Za-z])", r"\\log_{10}", text)
    text = re.sub(r"\\choose(?![A-Za-z])", r"\\choose ", text)
    text = re.sub(r"\\(?:operatorname) ?\{ ?(gcd|lcm|min|max) ?\}", r"\\\1", text)
    return text


def _two_meanings(text: str) -> bool:
    r"""Whether the parser would read it as numbers where it may mean matrices, vectors or fractional parts."""
    if _MATRIX_PRODUCT.search(text) and len(set(_CAPITAL.findall(text))) > 1:
        return True
    if _VECTORS.search(text) and "\\times" in text:
        return True
    return _BRACED.search(text) is not None


def _primed(match: re.Match[str]) -> str:
    """A derivative of which only the order is known: a symbol, or a function where it has an argument."""
    order = "prime" * len(match[2])
    return f"f_{{{match[1]}{order}}}(" if match[3] else f"x_{{{match[1]}{order}}}"


def _mixed(match: re.Match[str]) -> str:
    whole, above, below = match[1], match[2], match[3]
    if int(above) < int(below):
        return rf"({whole} + \frac{{{above}}}{{{below}}})"
    return rf"{whole} \cdot \frac{{{above}}}{{{below}}}"
