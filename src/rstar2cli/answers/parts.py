"""Reading what has parts: lists, tuples, sets, intervals, matrices, plus-minus."""

from __future__ import annotations

import re

from rstar2cli.answers import scan
from rstar2cli.answers.numbers import decimal_comma, is_decimal_comma
from rstar2cli.answers.spelling import is_enclosed
from rstar2cli.answers.values import Group, Matrix, Number, Read, Relation, SetBuilt, Value

MAX_ITEMS = 200
_MATRIX = re.compile(r"\\begin ?\{([pbB]?matrix|smallmatrix|array)\}(?:\{[lcr|]*\})?(.*?)\\end ?\{\1\}", re.DOTALL)
_SET_OPERATIONS = ("\\cup", "\\cap", "\\setminus")
_SAYS = re.compile(r"\d|[<>=]|\\(?:le|ge|neq|in)(?![A-Za-z])")
_BUILDER = re.compile(r"\\\{ ?(?P<var>[A-Za-z])(?: ?\\in ?\\mathbb\{R\})? ?(?:\||:) ?(?P<rule>.*)\\\}", re.DOTALL)


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


def is_list(text: str) -> bool:
    return len(_parts(text)) > 1


def listed(text: str, depth: int, read: Read) -> Value | None:
    if is_decimal_comma(text):
        return decimal_comma(text)
    parts = _parts(text)
    if len(parts) < 2 or len(parts) > MAX_ITEMS:
        return None
    items: list[Value] = []
    for _, part in parts:
        item = read(part, depth + 1)
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


def enclosed(text: str, depth: int, read: Read) -> Value | None:
    builder = _BUILDER.fullmatch(text)
    if builder:
        return read(builder["rule"], depth + 1)
    for opening, closing in (("\\{", "\\}"), ("\\langle", "\\rangle"), ("{", "}")):
        if is_enclosed(text, opening, closing):
            inner = text[len(opening) : -len(closing)].strip()
            if opening == "{" and not _separated(inner):
                return read(inner, depth + 1)
            return _group(text, opening, inner, closing, depth, read)
    if text[0] in "([" and text[-1] in ")]" and scan.closes_last(text):
        inner = text[1:-1].strip()
        items = scan.split(inner, [",", ";"])
        if len(items) == 1 and inner.startswith("\\begin"):
            return read(inner, depth + 1)
        if len(items) == 1:
            return (
                read(inner, depth + 1)
                if text[0] == "(" and text[-1] == ")"
                else _group(text, text[0], inner, text[-1], depth, read)
            )
        return _group(text, text[0], inner, text[-1], depth, read)
    return None


def _separated(inner: str) -> bool:
    return len(scan.split(inner, [",", ";"])) > 1 or is_enclosed(inner, "{", "}")


def _group(text: str, opening: str, inner: str, closing: str, depth: int, read: Read) -> Value | None:
    parts = scan.split(inner, [";"])
    if len(parts) == 1:
        parts = scan.split(inner, [","])
    if len(parts) > MAX_ITEMS:
        return None
    items: list[Value] = []
    for _, part in parts:
        item = read(part, depth + 1)
        if item is None:
            return None
        items.extend(_each(item, part))
    mark = {"\\{": "{", "\\langle": "<"}.get(opening, opening)
    return Group(text, mark, {"\\}": "}", "\\rangle": ">"}.get(closing, closing), tuple(items))


def set_built(text: str, depth: int, read: Read) -> Value | None:
    parts = scan.split(text, _SET_OPERATIONS)
    if len(parts) < 2 or any(not part for _, part in parts):
        return None
    if _names_before(parts[0][1]):
        return None
    value = _operand(parts[0][1], depth, read)
    for mark, part in parts[1:]:
        right = _operand(part, depth, read)
        if value is None or right is None:
            return None
        value = SetBuilt(text, mark[1:], value, right)
    return value


def _operand(text: str, depth: int, read: Read) -> Value | None:
    """Between set signs plain braces are those of a set, even around one item."""
    if is_enclosed(text, "{", "}"):
        return _group(text, "{", text[1:-1].strip(), "}", depth, read)
    return read(text, depth + 1)


def _names_before(text: str) -> bool:
    """Whether a relation or a name stands before the first set (`x \\in A \\cup B`)."""
    return len(scan.split(text, ["\\in", "="])) > 1


def matrix(text: str, depth: int, read: Read) -> Value | None:
    match = _MATRIX.fullmatch(text)
    if match is None:
        return None
    lines = [line for line in re.split(r"\\\\", match[2]) if line.strip()]
    rows = []
    for line in lines:
        cells = [read(cell, depth + 1) for cell in line.split("&")]
        if any(cell is None for cell in cells):
            return None
        rows.append(tuple(cell for cell in cells if cell is not None))
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        return None
    return Matrix(text, tuple(rows))


def plus_minus(text: str, depth: int, read: Read) -> Value | None:
    if "\\pm" not in text and text.count("\\mp") == 1:
        text = text.replace("\\mp", "\\pm")
    if text.count("\\pm") != 1:
        return None
    upper = read(text.replace("\\pm", "+").replace("\\mp", "-").lstrip("+ "), depth + 1)
    lower = read(text.replace("\\pm", "-").replace("\\mp", "+"), depth + 1)
    return None if upper is None or lower is None else Group(text, "", "", (upper, lower))
