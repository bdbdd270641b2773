"""Normal forms of answers: two answers are equal when their normal forms are the same text.

Everything works on text and whole numbers: nothing is evaluated and no float is made, so
1000000000000000000001 is not 1000000000000000000000. A form that can't be read gives null.
"""

from __future__ import annotations

import re
from fractions import Fraction

_LATEX_SPACES = re.compile(r"\\[,;:! ]|\\quad|\\qquad|~|[\u00a0\u2009\u202f\u2007]")
_MINUS = re.compile("[\u2212\u2010\u2011\u2012\u2013\u2014]")
_WRAPPER = re.compile(r"\\(?:text|mathrm|mathbf|textbf|mbox|operatorname)\s*\{([^{}]*)\}")
_GROUPED = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,3}(?: [0-9]{3})+")
_NUMBER = re.compile(r"([0-9]*)(?:\.([0-9]*))?")
_SIGN = re.compile(r"^([+-]?) ?")
_FRACTION = re.compile(
    r"\\[dtc]?frac ?(?:\{(?P<a>[^{}]*)\} ?\{(?P<b>[^{}]*)\}|(?P<c>[0-9]) ?(?P<d>[0-9])|(?P<e>[0-9]) ?\{(?P<f>[^{}]*)\})"
)
_SEPARATORS = re.compile(r",|;|\bor\b|\band\b|\\lor\b|\\vee\b")
_CHOICE = re.compile(r"\(?\s*([A-Za-z])\s*[).:]?")


def clean(text: str) -> str:
    """Common spelling: math delimiters, LaTeX spaces and text wrappers, minus signs, runs of spaces."""
    text = text.replace("{,}", ",").replace("\\left", "").replace("\\right", "")
    text = _MINUS.sub("-", _LATEX_SPACES.sub(" ", text))
    text = " ".join(_WRAPPER.sub(r" \1 ", text).split())
    for opening, closing in (("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]")):
        if text.startswith(opening) and text.endswith(closing) and len(text) >= len(opening) + len(closing):
            text = text[len(opening) : len(text) - len(closing)].strip()
    return text


def integer(text: str) -> str | None:
    """Decimal digits with ``-`` if negative; accepts thousands marks, ``+``, leading zeros and a zero fraction."""
    parts = _decimal(clean(text))
    if parts is None:
        return None
    sign, whole, fraction = parts
    if fraction.strip("0"):
        return None
    return sign + whole if whole != "0" else "0"


def rational(text: str) -> str | None:
    """``p/q`` in lowest terms; accepts integers, finite decimals, ``a/b`` and ``\\frac{a}{b}``."""
    spelled = clean(text)
    sign_match = _SIGN.match(spelled)
    sign = -1 if sign_match and sign_match.group(1) == "-" else 1
    body = spelled[sign_match.end() :] if sign_match else spelled
    fraction = _FRACTION.fullmatch(body)
    if fraction is not None:
        above = fraction["a"] or fraction["c"] or fraction["e"] or ""
        below = fraction["b"] or fraction["d"] or fraction["f"] or ""
    else:
        above, slash, below = body.partition("/")
        below = below if slash else "1"
        if sign_match and sign_match.group(1) and above[:1] in ("+", "-"):
            return None  # two signs
    top, bottom = _exact(above), _exact(below)
    if top is None or bottom is None or bottom == 0:
        return None
    value = sign * top / bottom
    return f"{value.numerator}/{value.denominator}"


def choice(text: str) -> str | None:
    """One capital letter, from ``B``, ``(b)``, ``B.`` or ``\\text{B}``."""
    match = _CHOICE.fullmatch(clean(text))
    return match.group(1).upper() if match else None


def plain(text: str) -> str | None:
    """Text without regard to case and runs of spaces; null if nothing is left."""
    return clean(text).casefold() or None


def expression(text: str) -> str | None:
    """A rational's normal form where it is one, else the formula without spaces. No algebra is done."""
    number = rational(text)
    if number is not None:
        return number
    spelled = clean(text).replace("\\dfrac", "\\frac").replace("\\tfrac", "\\frac").replace("\\cdot", "*")
    return spelled.replace(" ", "") or None


def candidates(text: str) -> list[str]:
    """Parts of an answer that names several (``5 or 6``, ``1, 2``)."""
    return [part.strip() for part in _SEPARATORS.split(clean(text)) if part.strip()]


def _exact(text: str) -> Fraction | None:
    parts = _decimal(text.strip())
    if parts is None:
        return None
    sign, whole, fraction = parts
    digits = int(whole + fraction)
    return Fraction(-digits if sign else digits, 10 ** len(fraction))


def _decimal(text: str) -> tuple[str, str, str] | None:
    """Sign (``-`` or nothing), whole digits without leading zeros, fraction digits."""
    sign_match = _SIGN.match(text)
    assert sign_match is not None
    body = text[sign_match.end() :]
    whole, dot, fraction = body.partition(".")
    if _GROUPED.fullmatch(whole):
        body = whole.replace(",", "").replace(" ", "") + dot + fraction
    match = _NUMBER.fullmatch(body)
    if match is None or not (match.group(1) or match.group(2)):
        return None
    sign = "-" if sign_match.group(1) == "-" else ""
    return sign, match.group(1).lstrip("0") or "0", match.group(2) or ""
