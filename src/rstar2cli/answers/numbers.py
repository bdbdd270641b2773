r"""Exact numbers in the ways that people write them. No float is ever made.

Thousands separators, decimals, decimal commas, repeating decimals, fractions, mixed numbers,
scientific notation, bases, number words after a number (``5 million``), and plain arithmetic.
"""

from __future__ import annotations

import re
from fractions import Fraction

from rstar2cli.answers import arithmetic
from rstar2cli.answers.values import Number

MAX_EXPONENT = 10_000
_PIECE = 10**4000
_PLAIN = re.compile(r"[+-]?\d+")
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+|[1-9]\d{0,2}(?: \d{3})+|\d{1,3}(?:,\d{2})+,\d{3}")
_EUROPEAN = re.compile(r"[+-]? ?(?:\d{1,3}(?:\.\d{3}){2,}|\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?: \d{3})+,\d+)")
"""``1.000.000``, ``1.234,5`` and ``1 234,5``, which mean nothing else."""
_DECIMAL = re.compile(r"([+-]?) ?(\d[\d, ]*|)(?:\.(\d*))?")
_REPEATING = re.compile(
    r"([+-]?) ?(\d*)\.(\d*)(?:\\overline\{(\d+)\}|\\dot\{(\d)\}|\\bar\{(\d+)\}|\((\d+)\))(?: ?\\ldots)?"
)
_SCIENTIFIC = re.compile(r"([+-]?[\d.,]+) ?(?:(?:\\times|\\cdot|\*|x) ?10 ?\^ ?\{? ?([+-]? ?\d+) ?\}?|[eE]([+-]?\d+))")
_POWER_OF_TEN = re.compile(r"([+-]?) ?10 ?\^ ?\{? ?([+-]? ?\d+) ?\}?")
_ENDLESS = re.compile(r"([+-]?) ?(\d*)\.(\d*?)(?:(\d)\4{2,}|(\d{2,6}?)\5+) ?\\ldots")
"""0.666… and 0.1212…: what has been said at least three times, or twice if it is longer than a digit, goes on."""
_BASE_NAMES = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11,
    "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
}  # fmt: skip
_BASE = re.compile(
    r"([+-]?)(?:\\text\{)?\(?([0-9A-Za-z]+)\)?\}?_\{\(?(?:\\text\{)?(?:base[ -]?)?\}? ?"
    rf"(\d{{1,2}}|{'|'.join(_BASE_NAMES)})\}}?\)?\}}"
)
_MIXED = re.compile(r"([+-]?) ?(\d+) +(\d+) ?/ ?(\d+)")
_SIMPLE_FRACTION = re.compile(r"([+-]?) ?(\d+) ?/ ?(\d+)")
_DECIMAL_COMMA = re.compile(r"([+-]?)(\d+),(\d+)")
_COMBINATIONS = re.compile(r"(?:\\mathrm\{C\}|C)_\{ ?(\d+) ?\}\^\{ ?(\d+) ?\}")
_ARITHMETIC = re.compile(r"[-+*/^!(){}\d.\s\\a-z]*")
_MULTIPLES = {
    "dozen": 12, "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
}  # fmt: skip
_MULTIPLE = re.compile(rf"(.*?)[ \\~]*(?:\\text\{{)?({'|'.join(_MULTIPLES)})\}}?")


def read_number(text: str) -> Number | None:
    """The number that a cleaned text writes; null if it is not one."""
    if _PLAIN.fullmatch(text):
        return Number(text, Fraction(int(text)) if len(text) < 4300 else _long(text))
    if not text or not any(char.isdigit() for char in text):
        return None
    return (
        _decimal(text)
        or _fraction(text)
        or _repeating(text)
        or _scientific(text)
        or _in_base(text)
        or _multiple(text)
        or _computed(text)
    )


def decimal_comma(text: str) -> Number | None:
    """``1000,99`` or ``0,111`` read with the comma as the decimal point."""
    match = _DECIMAL_COMMA.fullmatch(text)
    return None if match is None else _decimal(f"{match[1]}{match[2]}.{match[3]}")


def is_decimal_comma(text: str) -> bool:
    """Whether ``12,34`` can hardly be a list or thousands: a leading zero, or four digits and more before it."""
    match = _DECIMAL_COMMA.fullmatch(text)
    return match is not None and (match[2] == "0" or (len(match[2]) > 3 and len(match[3]) != 3))


def rounds_to(exact: Fraction, places: int) -> Fraction:
    """``exact`` rounded half away from zero to a number of places."""
    scaled = abs(exact) * 10**places
    whole = (2 * scaled.numerator + scaled.denominator) // (2 * scaled.denominator)
    return Fraction(whole if exact >= 0 else -whole, 10**places)


def latex(number: Number | Fraction) -> str:
    """A number as exact LaTeX."""
    value = number.value if isinstance(number, Number) else number
    sign = "-" if value < 0 else ""
    if value.denominator == 1:
        return sign + _digits(abs(value.numerator))
    return rf"{sign}\frac{{{_digits(abs(value.numerator))}}}{{{_digits(value.denominator)}}}"


def _digits(value: int) -> str:
    """A whole number as text; str() refuses more than 4300 digits, so in pieces."""
    pieces = []
    while value >= _PIECE:
        value, rest = divmod(value, _PIECE)
        pieces.append(f"{rest:04000d}")
    return str(value) + "".join(reversed(pieces))


def _long(digits: str) -> Fraction:
    # int() refuses more than 4300 digits; in pieces it costs what multiplication costs
    value = 0
    body = digits.lstrip("+-")
    for at in range(0, len(body), 4000):
        piece = body[at : at + 4000]
        value = value * 10 ** len(piece) + int(piece)
    return Fraction(-value if digits.startswith("-") else value)


def _decimal(text: str) -> Number | None:
    if _EUROPEAN.fullmatch(text):
        text = text.replace(".", "").replace(" ", "").replace(",", ".")
    match = _DECIMAL.fullmatch(text)
    if match is None:
        return None
    sign, whole, fraction = match[1], match[2].strip(), match[3]
    if not whole and not fraction:
        return None
    if not whole.isdigit() and whole:
        if not _GROUPED.fullmatch(whole) or whole.startswith(("0,", "0 ")):
            return None
        whole = whole.replace(",", "").replace(" ", "")
    fraction_digits = fraction or ""
    value = _long(f"{sign}{whole or '0'}{fraction_digits}") / 10 ** len(fraction_digits)
    if not fraction_digits:
        return Number(text, value)
    return Number(text, value, len(fraction_digits), len((whole + fraction_digits).lstrip("0")))


def _fraction(text: str) -> Number | None:
    match = _SIMPLE_FRACTION.fullmatch(text)
    if match and int(match[3]):
        return Number(text, Fraction(int(match[1] + match[2]), int(match[3])))
    match = _MIXED.fullmatch(text)
    if match and 0 < int(match[3]) < int(match[4]):
        value = int(match[2]) + Fraction(int(match[3]), int(match[4]))
        return Number(text, -value if match[1] == "-" else value)
    return None


def _repeating(text: str) -> Number | None:
    match = _REPEATING.fullmatch(text) or _ENDLESS.fullmatch(text)
    if match is None:
        return None
    sign, whole, fixed = match[1], match[2] or "0", match[3]
    period = next(group for group in match.groups()[3:] if group)
    value = Fraction(int(whole + fixed), 10 ** len(fixed))
    value += Fraction(int(period), (10 ** len(period) - 1) * 10 ** len(fixed))
    return Number(text, -value if sign == "-" else value)


def _scientific(text: str) -> Number | None:
    match = _SCIENTIFIC.fullmatch(text)
    if match is not None:
        written = match[1].replace(",", ".") if re.fullmatch(r"[+-]?\d+,\d{1,2}", match[1]) else match[1]
        mantissa, exponent = _decimal(written), int((match[2] or match[3]).replace(" ", ""))
    else:
        match = _POWER_OF_TEN.fullmatch(text)
        if match is None:
            return None
        mantissa, exponent = Number("", Fraction(-1 if match[1] == "-" else 1)), int(match[2].replace(" ", ""))
    if mantissa is None or abs(exponent) > MAX_EXPONENT:
        return None
    value = mantissa.value * Fraction(10) ** exponent
    if mantissa.places is None:
        return Number(text, value)
    places = mantissa.places - exponent
    return Number(text, value, places if places > 0 else None, mantissa.digits)


def _in_base(text: str) -> Number | None:
    match = _BASE.fullmatch(text)
    if match is None:
        return None
    base = _BASE_NAMES.get(match[3]) or int(match[3])
    if not 2 <= base <= 36 or not match[2][0].isalnum() or (match[2].isalpha() and base < 11):
        return None
    try:
        return Number(text, Fraction(int(match[1] + match[2], base)))
    except ValueError:  # a digit that the base does not have
        return None


def _multiple(text: str) -> Number | None:
    match = _MULTIPLE.fullmatch(text)
    inner = read_number(match[1].strip()) if match else None
    if match is None or inner is None:
        return None
    return Number(text, inner.value * _MULTIPLES[match[2]])


def _computed(text: str) -> Number | None:
    text = _COMBINATIONS.sub(r"\\binom{\1}{\2}", text)
    if not _ARITHMETIC.fullmatch(text):
        return None
    value = arithmetic.evaluate(text)
    return None if value is None else Number(text, value)
