r"""Units after a value: canonical names, and factors between units of one kind.

Known units are recognised with and without a text macro; unknown words count as a unit only after
a number, inside ``\text{…}`` or after a space, and never words that hedge.
"""

from __future__ import annotations

import re
from fractions import Fraction

_FAMILIES: dict[str, dict[str, tuple[Fraction, str]]] = {
    "length": {
        "mm": (Fraction(1, 1000), "millimeter millimetre"), "cm": (Fraction(1, 100), "centimeter centimetre"),
        "dm": (Fraction(1, 10), "decimeter decimetre"), "m": (Fraction(1), "meter metre"),
        "km": (Fraction(1000), "kilometer kilometre"), "in": (Fraction(254, 10000), "inch inches"),
        "ft": (Fraction(3048, 10000), "foot feet"), "yd": (Fraction(9144, 10000), "yard"),
        "mi": (Fraction(1609344, 1000), "mile"), "nm": (Fraction(1, 10**9), "nanometer nanometre"),
    },
    "mass": {
        "mg": (Fraction(1, 10**6), "milligram"), "g": (Fraction(1, 1000), "gram gm"), "kg": (Fraction(1), "kilogram"),
        "lb": (Fraction(45359237, 10**8), "pound lbs"), "oz": (Fraction(45359237, 16 * 10**8), "ounce"),
        "t": (Fraction(1000), "tonne"),
    },
    "time": {
        "s": (Fraction(1), "second sec"), "min": (Fraction(60), "minute mins"), "h": (Fraction(3600), "hour hr hrs"),
        "day": (Fraction(86400), "days"), "week": (Fraction(604800), "weeks"), "ms": (Fraction(1, 1000), "millisecond"),
        "month": (Fraction(0), "months"), "year": (Fraction(0), "years yr yrs"),
    },
    "volume": {
        "ml": (Fraction(1, 1000), "milliliter millilitre mL"), "l": (Fraction(1), "liter litre L"),
        "gal": (Fraction(0), "gallon"), "qt": (Fraction(0), "quart"), "cup": (Fraction(0), "cups"),
    },
    "money": {
        "$": (Fraction(1), "dollar usd \\$ bucks"), "cent": (Fraction(1, 100), "cents ¢"),
        "€": (Fraction(0), "euro eur"),
        "£": (Fraction(0), "gbp"), "¥": (Fraction(0), "yen"), "yuan": (Fraction(0), "rmb"),
        "₹": (Fraction(0), "rupee rs"),
    },
    "angle": {"deg": (Fraction(1), "degree °"), "rad": (Fraction(0), "radian")},
    "energy": {"j": (Fraction(1), "joule"), "kj": (Fraction(1000), "kilojoule"), "ev": (Fraction(0), "electronvolt")},
    "other": {
        "n": (Fraction(1), "newton"), "w": (Fraction(1), "watt"), "v": (Fraction(1), "volt"),
        "hz": (Fraction(1), "hertz"),
        "pa": (Fraction(1), "pascal"), "k": (Fraction(0), "kelvin"), "mol": (Fraction(1), "mole"),
    },
    "share": {"%": (Fraction(1, 100), "percent pct percentage \\%")},
}  # fmt: skip
_CANONICAL: dict[str, str] = {}
_FACTORS: dict[str, tuple[str, Fraction]] = {}
for _family, _members in _FAMILIES.items():
    for _name, (_factor, _others) in _members.items():
        _FACTORS[_name] = (_family, _factor)
        _CANONICAL[_name] = _name
        for _other in _others.split():
            _CANONICAL[_other.lower()] = _name
            if _other.isalpha():
                _CANONICAL.setdefault(_other.lower() + "s", _name)

_SPEEDS = {"mph": "mi/h", "kmh": "km/h", "kph": "km/h", "kmph": "km/h"}
MAX_WORDS = 5
"""Words of an unknown unit; more are a sentence."""
_NOTHING = frozenset({"unit", "units", "square units", "cubic units", "sq units", "units^2", "unit^2", "units^3"})
_HEDGES = re.compile(
    r"\b(?:or|and|but|maybe|not|about|approximately|roughly|if|when|where|for|at|to|is|are|with|from|than|least|most|mod|"
    r"more|less|otherwise|times|only|no|possible|any|all|some|each|even|odd|infinity|"
    r"hundred|thousand|million|billion|trillion|half|third|quarter|twice|squared|cubed|factorial|root|power|minus|plus)\b",
    re.IGNORECASE,
)
_POWER = r"(?:\^ ?\{? ?[23] ?\}?)?"
_DEGREES = re.compile(r"(.*?)\s*\^ ?\{ ?\\circ ?\}\s*(?:\\text\{)?\s*([CF])?\}?", re.DOTALL)
_FUNCTION = re.compile(r"\\(?:arc)?(?:sin|cos|tan|cot|sec|csc)(?![a-z])")
_PERCENT = re.compile(r"(.*?)[\s~]*(?:\\?%|(?:\\text\{)?\s*(?:percent|pct|percentage)\s*\}?)", re.DOTALL)
_CURRENCIES = "$€£¥₹%"
_PREFIX = re.compile(r"([+-]?) ?(\\\$|\$|€|£|¥|₹|USD|EUR|GBP|Rs\.?)[ ~]*(?=[\d.\\(])(.+)", re.DOTALL)
_RATE = re.compile(r"([+-]?) ?(\\\$|\$|€|£|¥|₹)[ ~]*(\d[\d.,]*) ?(?:per|/|each) ?([A-Za-z]+)")
_SUFFIX = re.compile(r"(.*?)[ ~]*(\\\$|\$|€|£|¥|₹|¢)", re.DOTALL)
_MACRO = re.compile(rf"(.*?[^\s~])[\s~]*((?:\\text\{{[^{{}}]*\}}{_POWER}(?: ?(?:/|\\cdot) ?)?)+)", re.DOTALL)
_NOTE = re.compile(r"(.*\d[^A-Za-z]*?) \( ?([A-Za-z][A-Za-z. '-]*)\)", re.DOTALL)
_PART = re.compile(r"\s*(?P<joined>(?:,|and|, and)?)\s*(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[A-Za-z]+)\.?\s*")
_BARE = re.compile(
    rf"([^A-Za-z]*\d[^A-Za-z]*?|.*[\d)}}] )\(?([A-Za-z][A-Za-z. /'-]*{_POWER}(?:/[A-Za-z]+{_POWER})?)\)?", re.DOTALL
)


def split_unit(text: str) -> tuple[str, str] | None:
    """A cleaned text as (value, canonical unit); null if no unit stands at its end, or a currency sign before it.

    The unit is ``""`` for ``units`` and the like, which say nothing.
    """
    match = _RATE.fullmatch(text)
    if match:
        return match[1] + match[3], f"{canonical(match[2])}/{canonical(match[4])}"
    match = _PREFIX.fullmatch(text)
    if match and match[3][0] not in _CURRENCIES:
        return match[1] + match[3], canonical(match[2])
    for pattern in (_PERCENT, _SUFFIX):
        match = pattern.fullmatch(text)
        if match and match[1].strip() and match[1].rstrip()[-1] not in _CURRENCIES:
            return match[1].strip(), "%" if pattern is _PERCENT else canonical(match[2])
    match = _DEGREES.fullmatch(text)
    if match and match[1].strip() and not _FUNCTION.search(match[1]):
        return match[1].strip(), "deg" + (match[2] or "")
    match = _MACRO.fullmatch(text)
    if match and match[1].strip():
        words = re.sub(r"\\text\{([^{}]*)\}", r" \1 ", match[2])
        return (
            None
            if _HEDGES.search(words) or any(c.isdigit() for c in _unpowered(words))
            else (match[1].strip(), canonical(words))
        )
    match = _NOTE.fullmatch(text)
    if match and not re.search(r"\b(?:or|not|maybe)\b", match[2]):  # 9 (apples): in brackets it can't hedge otherwise
        return match[1].strip(), canonical(match[2])
    match = _BARE.fullmatch(text)
    if match and match[1].count("(") == match[1].count(")") and _is_unit_word(match[1], match[2]):
        return match[1].strip(), canonical(match[2])
    return None


def compound(text: str) -> tuple[Fraction, str] | None:
    """``2 hours 30 minutes`` and ``5 ft 6 in`` as (value, unit) in the last unit; null for anything else."""
    plain = re.sub(r"\\text\{([^{}]*)\}", r" \1 ", text)
    parts = list(_PART.finditer(plain))
    if len(parts) < 2 or "".join(part[0] for part in parts) != plain:
        return None
    units = [canonical(part["unit"]) for part in parts]
    sizes = [factor(unit) for unit in units]
    total, above, kind = Fraction(0), None, sizes[0][0] if sizes[0] else ""
    for part, size in zip(parts, sizes, strict=True):
        if size is None or size[0] != kind or (part["joined"].strip() and kind != "time^1"):
            return None
        amount = Fraction(part["number"]) * size[1]
        if above is not None and amount >= above:
            return None  # 3 cm, 5 cm: two lengths
        total, above = total + amount, size[1]
    assert above is not None
    return total / above, units[-1]


def canonical(words: str) -> str:
    """One name for a unit: ``square centimeters``, ``cm²`` and ``sq cm`` are ``cm^2``; ``units`` is nothing."""
    text = " ".join(words.lower().replace("\\cdot", " ").replace("\\$", "$").replace(".", "").split()).strip("()[] -")
    text = re.sub(r"\s*\^ ?\{? ?([23]) ?\}?", r"^\1", text)
    text = re.sub(r"\bper\b", "/", text).partition(" of ")[0]  # pieces of gum are pieces
    text = _SPEEDS.get(text, text)
    if text in _NOTHING:
        return ""
    return "/".join(_product(part.strip()) for part in text.split("/"))


def factor(unit: str) -> tuple[str, Fraction] | None:
    """(kind, size in the kind's base unit) of a unit; null if nothing is known to convert it."""
    above, slash, below = unit.partition("/")
    if slash:
        sizes = factor(above), factor(below)
        if sizes[0] is None or sizes[1] is None:
            return None
        return f"{sizes[0][0]}/{sizes[1][0]}", sizes[0][1] / sizes[1][1]
    name, _, power = unit.partition("^")
    known = _FACTORS.get(name)
    if known is None or not known[1]:
        return None
    exponent = int(power) if power else 1
    return f"{known[0]}^{exponent}", known[1] ** exponent


def _product(text: str) -> str:
    power = ""
    for word, exponent in (("square", "^2"), ("sq", "^2"), ("cubic", "^3")):
        if text.startswith(word + " "):
            text, power = text[len(word) + 1 :], exponent
    name, _, own = text.partition("^")
    name = name.strip()
    return _CANONICAL.get(name, _singular(name)) + (power or (f"^{own}" if own else ""))


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _unpowered(words: str) -> str:
    return re.sub(r"\^ ?\{? ?[23] ?\}?", "", words)


def _is_unit_word(before: str, words: str) -> bool:
    """Whether bare letters after a value are a unit and not variables: a known one, or words after a space."""
    if _HEDGES.search(words) or not any(c.isdigit() for c in before):
        return False
    bare = _unpowered(words).strip().rstrip(".")
    if "/" in bare:
        return all(part.strip().lower() in _CANONICAL for part in bare.split("/")) and before.endswith((" ", "~"))
    if len(bare) == 1:
        return False  # 79 v: a variable, unless a text macro says otherwise
    known = bare.lower() in _CANONICAL
    if not before.endswith((" ", "~")):
        return known
    named = re.split(r"[ /.-]+", _unpowered(words).strip())
    return known or (
        len(named) <= MAX_WORDS and len(named[0]) > 2 and all(len(word) > 2 or word == "of" for word in named)
    )
