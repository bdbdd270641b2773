"""From a cleaned text to what it says: a number, a tuple, an interval, an equation, words, or a formula."""

from __future__ import annotations

import re

from rstar2cli.answers import scan
from rstar2cli.answers.formulas import variables
from rstar2cli.answers.numbers import decimal_comma, is_decimal_comma, latex, read_number
from rstar2cli.answers.spelling import clean, is_enclosed
from rstar2cli.answers.units import compound, split_unit
from rstar2cli.answers.values import (
    Clock,
    Empty,
    Formula,
    Group,
    Matrix,
    Named,
    Number,
    Quantity,
    Ratio,
    Reals,
    Relation,
    SetBuilt,
    Twice,
    Value,
    Words,
)

MAX_ITEMS = 200
MAX_DEPTH = 24
_SIGNS = {
    "\\le": "<=", "\\ge": ">=", "\\neq": "!=", "<": "<", ">": ">", "=": "=", "\\equiv": "=", "\\Rightarrow": "=>",
}  # fmt: skip
_EMPTY = re.compile(
    r"(?:\\emptyset|\\\{ ?\\\}|(?:\\text\{)?(?:there (?:is|are) )?"
    r"(?:no (?:real |integer |such |positive )?(?:solutions?|values?|numbers?|integers?)(?: exists?)?"
    r"|none|empty set|the empty set|\\text\{none\})\}?)",
    re.IGNORECASE,
)
_REALS = re.compile(
    r"(?:\\mathbb ?\{R\}|\\R|\( ?- ?\\infty ?, ?\+? ?\\infty ?\)"
    r"|(?:\\text\{)?(?:all )?(?:the )?real numbers?\}?|all reals)",
    re.IGNORECASE,
)
_NAME = (
    r"(?:\\?[A-Za-z]+|\\text\{[^{}]*\}|[A-Za-z]'*)(?:_\{[^{}]*\})?'*(?:\^\{\*\})?"
    r"(?: ?\( ?[A-Za-z](?: ?, ?[A-Za-z])* ?\))?"
)
_NAMES = re.compile(
    rf"{_NAME}|\( ?{_NAME}(?: ?[,;] ?{_NAME})* ?\)|{_NAME}(?: ?: ?{_NAME})+"
    rf"|\\(?:angle|triangle) ?(?:[A-Z](?:_\{{[^{{}}]*\}})? ?)+|\\overline ?\{{[A-Z]+\}}"
    rf"|[a-zA-Z]\^\{{-1\}} ?\( ?[a-z] ?\)"
    rf"|\| ?{_NAME} ?\|"
    r"|[f-hF-HNSTVp]'* ?\([^()]*\d[^()]*\)|[PE] ?\((?:[^()]|\([^()]*\))*\)"  # f(2), P(X > 2)
    r"|m ?\\angle ?[A-Z]+|\\(?:sin|cos|tan|cot|sec|csc)(?:\^\{2\})? ?(?:\\?[A-Za-z]+|\( ?\\?[A-Za-z]+ ?\))"
)
_NOT_NAMES = frozenset({"\\sin", "\\cos", "\\tan", "\\log", "\\ln", "\\pi", "\\infty", "e", "i", "\\pm", "\\sqrt"})
_MATRIX = re.compile(r"\\begin ?\{([pbB]?matrix|smallmatrix|array)\}(?:\{[lcr|]*\})?(.*?)\\end ?\{\1\}", re.DOTALL)
_SET_OPERATIONS = ("\\cup", "\\cap", "\\setminus")
_CLOCK = re.compile(r"(\d{1,2}) ?: ?([0-5]\d)(?: ?: ?([0-5]\d))? ?(?:\\text\{)? ?([AaPp])?\.?([Mm])?\.?\}?")
_APPROXIMATE = re.compile(
    r"(?:\\approx|\\text\{(?:approximately|about|approx\.?)\}|approximately|about)\s*", re.IGNORECASE
)
_SHORT_LIST = re.compile(r"\(?\w{1,3}\)?(?: (?:and|or) \(?\w{1,3}\)?)+")
_HOUR = re.compile(r"(\d{1,2}) ?(?:\\text\{)? ?([AaPp])\.? ?[Mm]\.?\}?")
_TWICE = re.compile(r"([^:]+):\s*((?:[(\[]|\\\{|\\emptyset|\\mathbb).*)", re.DOTALL)
"""An inequality, a colon, the same as an interval."""
_ORDER = re.compile(r"[<>]|\\(?:le|ge|neq)(?![A-Za-z])")
_TURNED = re.compile(r"([\[\]])([^\[\]()]*)([\[\]])")
_SAYS = re.compile(r"\d|[<>=]|\\(?:le|ge|neq|in)(?![A-Za-z])")
_LETTER = re.compile(r"[A-Za-z](?:_\{[A-Za-z0-9]+\})?")
_POINT = re.compile(r"([A-Z]'?(?:_\{\d\})?) ?(\(.*\d.*\))")
_GROUPED = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})+(?!\d|,\d)")
_IN_FORMULA = re.compile(r"\\[A-Za-z]|[A-Za-z/+*^=]|(?<=[^\s({\[])-")
_TELLING = re.compile(
    r"(?:\\text\{ ?)?(?:(?:so|thus|hence|therefore),? )?"
    r"(?:exactly|(?:there|it|this|that|which|(?:the|a|an|its|their|our) (?:(?!not|or|if)[a-z]+ ){1,4}?)"
    r"(?: ?(?:is|are|equals|will be|must be))|(?:a )?total(?: of)?|we (?:get|have|find|need))(?: exactly| equal to)?:?"
    r"(?: ?\} ?| )(?=[\d\\$({+.-])(?!\\text)",
    re.IGNORECASE,
)
_NUMBER_SET = re.compile(r"\\mathbb ?\{[A-QS-Z]\}(?:[\^_]\{[^{}]*\})*")
_SPOKEN = re.compile(r"[A-Za-z][A-Za-z'\". ,!?&-]*")
_BUILDER = re.compile(r"\\\{ ?(?P<var>[A-Za-z])(?: ?\\in ?\\mathbb\{R\})? ?(?:\||:) ?(?P<rule>.*)\\\}", re.DOTALL)


def read(text: str) -> Value | None:
    """What an answer says; null if nothing is left of it. ``text`` need not be cleaned."""
    return _read(clean(text), 0)


def read_clean(cleaned: str) -> Value | None:
    """The same for a text that is cleaned already."""
    return _read(cleaned, 0)


def _read(text: str, depth: int) -> Value | None:
    text = text.strip()
    if not text or depth > MAX_DEPTH:
        return Formula(text) if text else None
    number = read_number(text)
    if number is not None:
        return number
    if _EMPTY.fullmatch(text):
        return Empty(text)
    if _REALS.fullmatch(text):
        return Reals(text)
    if not scan.balanced(text):
        turned = _TURNED.sub(_brackets, text)
        return Formula(text) if turned == text or not scan.balanced(turned) else _read(turned, depth + 1)
    if "," in text:
        text = _ungrouped(text)
    said_twice = _TWICE.fullmatch(text)
    if said_twice and (_ORDER.search(said_twice[1]) or _EMPTY.fullmatch(said_twice[1].strip())):
        first, second = (_read(part, depth + 1) for part in said_twice.groups())
        return None if first is None or second is None else Twice(text, first, second)
    words = _words(text)
    if words is not None:
        return words
    return (
        _clock(text)
        or _told(text, depth)
        or _named_number(text)
        or _compound(text)
        or _measured(text)
        or _listed(text, depth)
        or _set_built(text, depth)
        or _related(text, depth)
        or _point(text, depth)
        or _ratio(text, depth)
        or _enclosed(text, depth)
        or _matrix(text, depth)
        or _plus_minus(text, depth)
        or _with_unit(text, depth)
        or _approximate(text, depth)
        or Formula(text)
    )


def _words(text: str) -> Value | None:
    if is_enclosed(text, "\\text{", "}") and text.count("\\text") == 1:
        inner = text[len("\\text{") : -1].strip()
        if _CLOCK.fullmatch(inner) or read_number(inner) is not None:
            return _read(inner, MAX_DEPTH - 1)
        unit = split_unit(inner)
        if unit is not None and read_number(unit[0]) is not None:
            return _with_unit(inner, MAX_DEPTH - 1)
        if "=" in inner:
            return _read(inner, MAX_DEPTH - 3)
        if "," in inner or ";" in inner or _SHORT_LIST.fullmatch(inner):
            return _listed(inner, MAX_DEPTH - 2) or Words(text, plain_words(inner))
        return Words(text, plain_words(inner))
    if _NUMBER_SET.fullmatch(text):
        return Words(text, text.replace(" ", ""))
    if "\\text{" in text:
        return None
    if _SPOKEN.fullmatch(text) and _has_word(text) and not _listing(text):
        return Words(text, plain_words(text))
    return None


def plain_words(text: str) -> str:
    """Words without regard to case, punctuation and runs of spaces."""
    return " ".join(re.sub(r"[^\w\s+\-/']", " ", re.sub(r"\\text\{([^{}]*)\}", r"\1", text)).casefold().split())


def _has_word(text: str) -> bool:
    return any(len(word) > 2 for word in re.findall(r"[A-Za-z]+", text))


def _listing(text: str) -> bool:
    return len(_parts(text)) > 1


def _parts(text: str) -> list[tuple[str, str]]:
    """Items of a bare list, each with the mark before it; semicolons bind less than commas."""
    marks = [";", "\\text{ and }", "\\text{and}", "\\text{or}", "\\or", "\\and", "and", "or", "&"]
    if "\\begin" in text:
        marks.remove("&")
    parts = scan.split(text, marks)
    if any(mark in ("\\or", "\\and") for mark, _ in parts) and any(_SAYS.search(part) is None for _, part in parts):
        return [("", text)]  # p or q, of logic: no list of answers
    if any(mark == ";" for mark, _ in parts):
        parts = scan.split(text, [";"])
    elif len(parts) == 1:
        parts = scan.split(text, [","])
    else:
        parts = [
            (mark if at == 0 else ",", item)
            for mark, part in parts
            for at, (_, item) in enumerate(scan.split(part, [","]))
        ]
    return [(mark, part) for mark, part in parts if part]


def _listed(text: str, depth: int) -> Value | None:
    if is_decimal_comma(text):
        return decimal_comma(text)
    parts = _parts(text)
    if len(parts) < 2 or len(parts) > MAX_ITEMS:
        return None
    items: list[Value] = []
    for _, part in parts:
        item = _read(part, depth + 1)
        if item is None:
            return None
        items.extend(_each(item, part))
    unequal = items[0]
    if isinstance(unequal, Relation) and unequal.signs == ("!=",) and all(isinstance(i, Number) for i in items[1:]):
        # x is neither 1 nor 2
        sides = [unequal.sides, *((unequal.sides[0], item.source) for item in items[1:])]
        return Group(text, "", "", tuple(Relation(text, pair, ("!=",)) for pair in sides), "and")
    words = {mark.replace("\\text{", "").strip(" }\\") for mark, _ in parts}
    joiner = "or" if "or" in words else "and" if "and" in words else ","
    return Group(text, "", "", tuple(items), joiner)


def _each(item: Value, text: str) -> tuple[Value, ...]:
    """The two values of a plus-minus within a list; any other item."""
    return item.items if isinstance(item, Group) and item.opening == "" and "\\pm" in text else (item,)


def _enclosed(text: str, depth: int) -> Value | None:
    builder = _BUILDER.fullmatch(text)
    if builder:
        return _read(builder["rule"], depth + 1)
    for opening, closing in (("\\{", "\\}"), ("\\langle", "\\rangle"), ("{", "}")):
        if is_enclosed(text, opening, closing):
            inner = text[len(opening) : -len(closing)].strip()
            if opening == "{" and not _separated(inner):
                return _read(inner, depth + 1)
            return _group(text, opening, inner, closing, depth)
    if text[0] in "([" and text[-1] in ")]" and _closes_last(text):
        inner = text[1:-1].strip()
        items = scan.split(inner, [",", ";"])
        if len(items) == 1 and inner.startswith("\\begin"):
            return _read(inner, depth + 1)
        if len(items) == 1:
            return (
                _read(inner, depth + 1)
                if text[0] == "(" and text[-1] == ")"
                else _group(text, text[0], inner, text[-1], depth)
            )
        return _group(text, text[0], inner, text[-1], depth)
    return None


def _separated(inner: str) -> bool:
    return len(scan.split(inner, [",", ";"])) > 1 or is_enclosed(inner, "{", "}")


def _group(text: str, opening: str, inner: str, closing: str, depth: int) -> Value | None:
    parts = scan.split(inner, [";"])
    if len(parts) == 1:
        parts = scan.split(inner, [","])
    if len(parts) > MAX_ITEMS:
        return None
    items: list[Value] = []
    for _, part in parts:
        item = _read(part, depth + 1)
        if item is None:
            return None
        items.extend(_each(item, part))
    mark = {"\\{": "{", "\\langle": "<"}.get(opening, opening)
    return Group(text, mark, {"\\}": "}", "\\rangle": ">"}.get(closing, closing), tuple(items))


def _closes_last(text: str) -> bool:
    """Whether the bracket that opens first, of whatever shape, closes last."""
    depth = at = 0
    while at < len(text):
        if text[at] == "\\":
            at += 2
            continue
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if depth == 0:
            return at == len(text) - 1
        at += 1
    return False


def _related(text: str, depth: int) -> Value | None:
    about = scan.split(text, ["\\approx"])
    if len(about) == 2 and about[0][1]:
        return _about(text, about[0][1], about[1][1], depth)
    inside = scan.split(text, ["\\in", "\\notin"])
    if len(inside) == 2 and inside[1][0] == "\\in" and _is_name(inside[0][1]):
        value = _read(inside[1][1], depth + 1)
        return None if value is None else Named(text, _name_key(inside[0][1]), value)
    parts = scan.split(text, list(_SIGNS))
    if len(parts) < 2 or any(not part for _, part in parts):
        return None
    signs = tuple(_SIGNS[mark] for mark, _ in parts[1:])
    sides = tuple(part for _, part in parts)
    if "=>" in signs:
        if any(read_number(side) for side in sides[:-1]):
            return Formula(text)  # 6 => 7 names two numbers
        return _read(sides[-1], depth + 1) if signs[-1] == "=>" else None
    if set(signs) == {"="} and _is_name(sides[0]):
        value = _read(sides[-1], depth + 1)
        if value is None:
            return None
        return Named(text, _name_key(sides[0]), value) if len(sides) == 2 or _consistent(sides[1:], depth) else None
    if set(signs) == {"="} and (_consistent(sides, depth) or _calculation(sides)):
        return _read(sides[-1], depth + 1)
    if signs == ("=",) and _LETTER.fullmatch(sides[1]) and read_number(sides[0]) is not None:
        return Named(text, sides[1], _read(sides[0], depth + 1) or Formula(sides[0]))
    return Relation(text, sides, signs)


def _consistent(sides: tuple[str, ...], depth: int) -> bool:
    """Whether a chain of numbers is true: 3+2=5."""
    numbers = [_read(side, depth + 1) for side in sides]
    return all(isinstance(n, Number) and n == numbers[0] for n in numbers)


def _calculation(sides: tuple[str, ...]) -> bool:
    """Whether it is worked out what no variable is in: \\sqrt{25} = 5. Numbers alone must agree."""
    return not any(variables(side) for side in sides) and read_number(sides[0]) is None


def _about(text: str, exact: str, decimals: str, depth: int) -> Value | None:
    """An exact value and its decimals say the exact one; a name and decimals say the decimals."""
    value = _read(exact, depth + 1)
    if value is None or isinstance(value, Named):
        return value
    if _is_name(exact) or variables(exact):
        right = _read(decimals, depth + 1)
        return None if right is None else Named(text, _name_key(exact), right)
    number, unit = split_unit(decimals) or (decimals, "")
    near = read_number(number)
    if isinstance(value, Number) and (near is None or abs(near.value - value.value) > abs(value.value) / 100):
        return Formula(text)  # 5 is about 6
    return Quantity(text, value, unit) if unit and isinstance(value, Number | Formula) else value


def _point(text: str, depth: int) -> Value | None:
    """``A(1, 2)``."""
    match = _POINT.fullmatch(text)
    if match is None or not _closes_last(match[2]):
        return None
    value = _read(match[2], depth + 1)
    return Named(text, match[1], value) if isinstance(value, Group) and len(value.items) > 1 else None


def _is_name(text: str) -> bool:
    text = text.strip()
    return text not in _NOT_NAMES and _NAMES.fullmatch(text) is not None


def _name_key(text: str) -> str:
    return re.sub(r"[\s|]|\\text|(?<!_)[{}]", "", text).replace(";", ",")


def _clock(text: str) -> Value | None:
    hour = _HOUR.fullmatch(text)
    if hour and 0 < int(hour[1]) <= 12:
        return Clock(text, int(hour[1]) * 3600, f"{hour[2].lower()}m")
    match = _CLOCK.fullmatch(text)
    if match is None or int(match[1]) > 24:
        return None
    half = f"{match[4].lower()}m" if match[4] and match[5] else ""
    return Clock(text, int(match[1]) * 3600 + int(match[2]) * 60 + int(match[3] or 0), half)


def _ratio(text: str, depth: int) -> Value | None:
    parts = scan.split(text, [":"])
    if len(parts) < 2 or len(parts) > 8:
        return None
    terms = [_read(part, depth + 1) for _, part in parts]
    if any(not isinstance(term, Number | Formula) for term in terms):
        return None
    return Ratio(text, tuple(term for term in terms if term is not None))


def _set_built(text: str, depth: int) -> Value | None:
    parts = scan.split(text, _SET_OPERATIONS)
    if len(parts) < 2 or any(not part for _, part in parts):
        return None
    if _names_before(parts[0][1]):
        return None
    value = _operand(parts[0][1], depth)
    for mark, part in parts[1:]:
        right = _operand(part, depth)
        if value is None or right is None:
            return None
        value = SetBuilt(text, mark[1:], value, right)
    return value


def _operand(text: str, depth: int) -> Value | None:
    """Between set signs plain braces are those of a set, even around one item."""
    if is_enclosed(text, "{", "}"):
        return _group(text, "{", text[1:-1].strip(), "}", depth)
    return _read(text, depth + 1)


def _names_before(text: str) -> bool:
    """Whether a relation or a name stands before the first set (`x \\in A \\cup B`)."""
    return len(scan.split(text, ["\\in", "="])) > 1


def _matrix(text: str, depth: int) -> Value | None:
    match = _MATRIX.fullmatch(text)
    if match is None:
        return None
    lines = [line for line in re.split(r"\\\\", match[2]) if line.strip()]
    rows = []
    for line in lines:
        cells = [_read(cell, depth + 1) for cell in line.split("&")]
        if any(cell is None for cell in cells):
            return None
        rows.append(tuple(cell for cell in cells if cell is not None))
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        return None
    return Matrix(text, tuple(rows))


def _plus_minus(text: str, depth: int) -> Value | None:
    if "\\pm" not in text and text.count("\\mp") == 1:
        text = text.replace("\\mp", "\\pm")
    if text.count("\\pm") != 1:
        return None
    upper = _read(text.replace("\\pm", "+").replace("\\mp", "-").lstrip("+ "), depth + 1)
    lower = _read(text.replace("\\pm", "-").replace("\\mp", "+"), depth + 1)
    return None if upper is None or lower is None else Group(text, "", "", (upper, lower))


def _told(text: str, depth: int) -> Value | None:
    """``There are 5 solutions``: what follows words that say nothing but that it is the answer."""
    match = _TELLING.match(text)
    return None if match is None else _read(text[match.end() :], depth + 1)


def _compound(text: str) -> Value | None:
    found = compound(text) if text[0].isdigit() else None
    return None if found is None else Quantity(text, Number(latex(found[0]), found[0]), found[1])


def _ungrouped(text: str) -> str:
    """Without the thousands marks of numbers that stand in a formula or beside the items of a spaced list."""
    if re.search(r"[,;] |;", text):
        return _GROUPED.sub(lambda match: match[0].replace(",", ""), text)
    rest = _GROUPED.sub("", text)
    if rest == text or "," in rest or not _IN_FORMULA.search(rest) or re.search(r"\( ?\)", rest):
        return text
    return _GROUPED.sub(lambda match: match[0].replace(",", ""), text)


def _brackets(match: re.Match[str]) -> str:
    """``]2, 5[`` as ``(2, 5)``."""
    return f"{'[' if match[1] == '[' else '('}{match[2]}{']' if match[3] == ']' else ')'}"


def _named_number(text: str) -> Value | None:
    """``x = 1,000`` before its comma is taken for that of a list."""
    name, equals, right = text.partition("=")
    number = read_number(right.strip()) if equals and "," in right and _is_name(name) else None
    return None if number is None else Named(text, _name_key(name), number)


def _measured(text: str) -> Value | None:
    """A number with its unit, before its commas are taken for those of a list: $1,234.50."""
    found = split_unit(text)
    number = read_number(found[0]) if found else None
    if found is None or number is None:
        return None
    return Quantity(text, number, found[1]) if found[1] else number


def _with_unit(text: str, depth: int) -> Value | None:
    found = split_unit(text)
    if found is None:
        return None
    value = _read(found[0], depth + 1)
    if value is None or isinstance(value, Words | Quantity | Named | Relation | Empty | Reals):
        return None
    return Quantity(text, value, found[1]) if found[1] else value


def _approximate(text: str, depth: int) -> Value | None:
    match = _APPROXIMATE.match(text)
    return None if match is None else _read(text[match.end() :], depth + 1)
