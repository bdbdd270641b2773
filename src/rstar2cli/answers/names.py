"""What can stand before an equals sign as the name of a value: x, f(x), (a, b), P(X > 2)."""

from __future__ import annotations

import re

_NAME = (
    r"(?:\\?[A-Za-z]+|\\text\{[^{}]*\}|[A-Za-z]'*)(?:_\{[^{}]*\})?'*(?:\^\{\*\})?"
    r"(?: ?\( ?[A-Za-z](?: ?, ?[A-Za-z])* ?\))?"
)
_NAMES = re.compile(
    rf"{_NAME}|\( ?{_NAME}(?: ?[,;] ?{_NAME})* ?\)|{_NAME}(?: ?: ?{_NAME})+"
    rf"|\\(?:angle|triangle) ?(?:[A-Z](?:_\{{[^{{}}]*\}})? ?)+|\\overline ?\{{[A-Z]+\}}"
    rf"|[a-zA-Z]\^\{{-1\}} ?\( ?[a-z] ?\)"
    rf"|\| ?{_NAME} ?\||\\(?:vec|hat|bar) ?\{{ ?[A-Za-z]+ ?\}}"
    r"|[f-hF-HNSTVp]'* ?\([^()]*\d[^()]*\)|[PE] ?\((?:[^()]|\([^()]*\))*\)"  # f(2), P(X > 2)
    r"|m ?\\angle ?[A-Z]+|\\(?:sin|cos|tan|cot|sec|csc)(?:\^\{2\})? ?(?:\\?[A-Za-z]+|\( ?\\?[A-Za-z]+ ?\))"
)
_NOT_NAMES = frozenset({"\\sin", "\\cos", "\\tan", "\\log", "\\ln", "\\pi", "\\infty", "e", "i", "\\pm", "\\sqrt"})


def is_name(text: str) -> bool:
    text = text.strip()
    return text not in _NOT_NAMES and _NAMES.fullmatch(text) is not None


def name_key(text: str) -> str:
    return re.sub(r"[\s|]|\\text|(?<!_)[{}]", "", text).replace(";", ",")
