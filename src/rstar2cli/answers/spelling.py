r"""One spelling for what is written in many ways: glyphs, spaces, delimiters, text macros, braces.

Only the spelling changes, never the value: ``\dfrac12`` and ``\frac{1}{2}`` become the same text.
"""

from __future__ import annotations

import re

from rstar2cli.answers.glyphs import ascii_math

_THOUSANDS_MARK = re.compile(r"(?<=\d)(?:\{,\}|,\s*\\!|,\\,|\\,|\\!|\\;|\\:|\\ |~)\s*(?=\d{3}(?!\d))")
_SPACES = re.compile(r"(?<!\\)\\[,;:> ]|\\(?:quad|qquad|thinspace|enspace)(?![A-Za-z])|~|\s+")
_DROPPED = re.compile(
    r"(?<!\\)\\!|\\(?:left|right|bigl|bigr|Bigl|Bigr|biggl|biggr|big|Big|bigg|Bigg|middle"
    r"|displaystyle|textstyle|scriptstyle|limits|nolimits|rm|bf|it|boldsymbol|mathstrut|hfill|strut|large|Large|small|normalsize|underline|checkmark)(?![A-Za-z])\.?"
)
_TEXT = re.compile(
    r"\\(?:text|textbf|textit|textrm|textsf|texttt|mbox|hbox|mathbf|mathrm|mathit|mathsf|bm|operatorname\*?)\s*\{([^{}]*)\}"
)
_COLOUR = re.compile(r"\\(?:text)?color\s*\{[^{}]*\}|\\phantom\s*\{[^{}]*\}")
_OVER = re.compile(r"\{([^{}]*?)\s*\\over(?![A-Za-z])\s*([^{}]*)\}")
_FRACTION = re.compile(r"\\(?:[dtcs]|nice)?frac(?![A-Za-z])\s*")
_SYNONYMS = {
    "leq": "le", "leqslant": "le", "geq": "ge", "geqslant": "ge", "ne": "neq", "lt": "<", "gt": ">",
    "varnothing": "emptyset", "oslash": "emptyset", "backslash": "setminus", "smallsetminus": "setminus",
    "dots": "ldots", "cdots": "ldots",
    "dotsc": "ldots", "dotsm": "ldots", "dotsb": "ldots", "land": "and", "wedge": "and", "lor": "or", "vee": "or",
    "ast": "cdot", "colon": ":", "lbrace": "{", "rbrace": "}", "dbinom": "binom", "tbinom": "binom", "mid": "|",
    "vert": "|", "lvert": "|", "rvert": "|", "degree": "^{\\circ}", "implies": "Rightarrow", "lbrack": "[",
    "rbrack": "]", "percent": "\\%", "arcsinh": "arsinh", "arccosh": "arcosh", "arctanh": "artanh",
    "overrightarrow": "vec", "mod": "pmod", "varphi": "phi", "vartheta": "theta", "varepsilon": "epsilon",
    "infin": "infty",
}  # fmt: skip
_COMMAND = re.compile(r"\\([A-Za-z]+)")
FUNCTIONS = (
    "arcsin",
    "arccos",
    "arctan",
    "arccot",
    "arcsec",
    "arccsc",
    "sinh",
    "cosh",
    "tanh",
    "sin",
    "cos",
    "tan",
    "cot",
    "sec",
    "csc",
    "ln",
    "log",
    "exp",
    "gcd",
    "lcm",
    "min",
    "max",
)
"""Functions that LaTeX has commands for."""
_PLAIN = {name: name for name in FUNCTIONS if name not in ("min", "max", "sec")} | {
    "pi": "pi", "sqrt": "sqrt", "infinity": "infty", "inf": "infty", "mod": "pmod",
}  # fmt: skip
"""Words of formulas that are not written in LaTeX; min and sec are units as well."""
_PLAIN_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}(?![A-Za-z])")
_PLAIN_ROOT = re.compile(r"(?<![\\A-Za-z])sqrt\(")
_UNIT_LETTERS = frozenset("msghlNJKWVL")
"""Single letters that \\mathrm marks as a unit rather than a variable."""
_FUNCTION_NAMES = frozenset(FUNCTIONS)
_INLINE = re.compile(r"(?<![\\$])\$(?=\S)([^$]*[^\s$\\])\$(?![\d$])")
"""A formula within a sentence. Told from two prices as Pandoc does: no space inside the dollars, no digit after."""
_PREAMBLE = re.compile(r"^\\text\{ ?(?:the )?(?:final )?answer(?: is)?:? ?\} ?(?=\S)", re.IGNORECASE)
_CHOOSE = re.compile(r"\{([^{}]*?)\s*\\choose(?![A-Za-z])\s*([^{}]*)\}")
_DELIMITERS = (("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]"))
_BOX = re.compile(r"\\f?boxed\s*|\\fbox\s*")
_SHORT_SCRIPT = re.compile(r"(\^)\s*(-?\d+|\\[A-Za-z]+|[A-Za-z])|(_)\s*(\\[A-Za-z]+|[A-Za-z0-9])")
_SHORT_ROOT = re.compile(r"\\sqrt\s*(\[[^\[\]]*\])?\s*(\\[A-Za-z]+|[A-Za-z0-9])")
_POWER_MARK = re.compile(r"(?<=[\w)}])\s*\*\*\s*(?=[\w({\\-])")
_WORDS = re.compile(r"[A-Za-z]")
_QUOTED_THOUSANDS = re.compile(r"(?<=\d)'(?=\d{3}(?!\d))")
_UNION = re.compile(r"(?<=[)\]}]) ?U ?(?=[(\[{]|\\\{)")
_LINES = re.compile(
    r"(?:\\\{ ?)?\\begin ?\{(aligned|align\*?|alignedat|equation\*?|split|gathered|cases)\}(.*)\\end ?\{\1\}", re.DOTALL
)


def clean(text: str) -> str:
    r"""The one spelling: LaTeX commands, ASCII, single spaces, braces around every script and root.

    ``\text{…}`` keeps words apart from letters that are variables; a text macro around a number or
    a single letter is dropped. Thousands marks of LaTeX (``{,}``, ``,\!``, ``\,``) are dropped where
    they group digits in threes.
    """
    text = _plain_functions(ascii_math(text))
    if not any(mark in text for mark in "\\$~{^_*"):
        text = _signs(" ".join(text.replace("...", " \\ldots ").split()))  # most answers: a number or a word
        text = text[:-1] if text.endswith(".") and text[-2:-1].isalpha() else text
        return _unquoted(text.rstrip(",;") or text)
    text = text.replace("\\n", " ") if "\\n\\n" in text else text  # newlines escaped twice
    text = _POWER_MARK.sub("^", text)
    text = _undelimited(text.strip())
    if text.endswith("\\") and not _escaped(text, len(text) - 1):
        text = text[:-1]  # a LaTeX space that lost its space
    text = _COLOUR.sub("", text).replace("{:}", ":")
    text = _OVER.sub(r"\\frac{\1}{\2}", text)
    text = _THOUSANDS_MARK.sub("", text)
    text = _DROPPED.sub(" ", text)
    text = _TEXT.sub(_text_macro, text)
    text = _COMMAND.sub(_synonym, text).replace("...", " \\ldots ")
    text = _CHOOSE.sub(r"\\binom{\1}{\2}", text)
    text = _SPACES.sub(" ", text).replace("{,}", ",")
    text = _braced_fractions(text)
    text = _SHORT_SCRIPT.sub(lambda m: f"{m[1] or m[3]}{{{m[2] or m[4]}}}", text)
    text = _SHORT_ROOT.sub(lambda match: rf"\sqrt{match[1] or ''}{{{match[2]}}}", text)
    text = _lines(_signs(" ".join(text.split())))
    return _unquoted(_unwrapped(_PREAMBLE.sub("", text)))


def _plain_functions(text: str) -> str:
    r"""``2*sqrt(3)`` and ``pi/4`` as LaTeX, where no other words stand that letters could belong to."""
    words = _PLAIN_WORD.findall(text)
    if not words or any(word not in _PLAIN for word in words):
        return text
    for match in reversed(list(_PLAIN_ROOT.finditer(text))):
        end = _bracket_end(text, match.end() - 1)
        if end:
            text = f"{text[: match.start()]}\\sqrt{{{text[match.end() : end - 1]}}}{text[end:]}"
    return _PLAIN_WORD.sub(lambda match: f"\\{_PLAIN[match[0]]} ", text)


def _bracket_end(text: str, at: int) -> int:
    """Where the round bracket that opens at a place is closed; 0 if it is not."""
    depth = 0
    for end in range(at, len(text)):
        depth += (text[end] == "(") - (text[end] == ")")
        if depth == 0:
            return end + 1
    return 0


def key(cleaned: str) -> str:
    """A cleaned text without spaces: equal keys are the same answer, whatever it means."""
    return re.sub(r"\s+(?![A-Za-z])|(?<![A-Za-z])\s+", "", cleaned)


def is_enclosed(text: str, opening: str, closing: str) -> bool:
    """Whether the first bracket is closed by the last character."""
    if not (text.startswith(opening) and text.endswith(closing)) or len(text) < len(opening) + len(closing):
        return False
    depth = at = 0
    while at < len(text):
        if text.startswith(opening, at) and not _escaped(text, at):
            depth += 1
            at += len(opening)
        elif text.startswith(closing, at) and not _escaped(text, at):
            depth -= 1
            at += len(closing)
            if depth == 0 and at < len(text):
                return False
        else:
            at += 1
    return depth == 0


def _escaped(text: str, at: int) -> bool:
    backslashes = 0
    while at > backslashes and text[at - 1 - backslashes] == "\\":
        backslashes += 1
    return backslashes % 2 == 1


def _undelimited(text: str) -> str:
    """Without the math delimiters around all of it, and without a full stop after it."""
    while True:
        before = text
        for opening, closing in _DELIMITERS:
            inner = text[len(opening) : len(text) - len(closing)]
            if (
                len(text) > len(opening) + len(closing)
                and text.startswith(opening)
                and text.endswith(closing)
                and opening not in inner.replace("\\$", "")
                and not inner.endswith("\\")
            ):
                text = inner.strip()
        if before == text:
            return _INLINE.sub(r" \1 ", text)


def _unwrapped(text: str) -> str:
    """Without a box, plain braces or delimiters around all of it, and a full stop after it."""
    while True:
        before = text
        text = text.strip().rstrip(".,;").rstrip() if not text.endswith("\\.") else text
        match = _BOX.match(text)
        if match and match.end() < len(text) and is_enclosed(text[match.end() :], "{", "}"):
            text = text[match.end() + 1 : -1]
        text = _undelimited(text.strip())
        if is_enclosed(text, "{", "}") and "," not in text and ";" not in text:
            text = text[1:-1]
        if text == before:
            return text


def _lines(text: str) -> str:
    r"""The lines of an ``aligned`` and its like as a list; a single one as it stands."""
    match = _LINES.fullmatch(text)
    if match is None or (match[1] == "cases" and "&" in match[2]):
        return text  # cases with conditions are a function by pieces
    return ", ".join(line.replace("&", " ").strip(" ,;") for line in match[2].split("\\\\") if line.strip(" &"))


def _unquoted(text: str) -> str:
    """Without the quotation marks around all of it."""
    inner = text[1:-1].strip()
    return inner if text[:1] in ('"', "`") and text[-1:] == text[:1] and text[0] not in inner and inner else text


def _signs(text: str) -> str:
    text = _POWER_MARK.sub("^", text).replace("**", "")
    for written, sign in ((">=", r" \ge "), ("<=", r" \le "), ("!=", r" \neq "), ("=>", r" \Rightarrow ")):
        text = text.replace(written, sign)
    if "'" in text:
        text = _QUOTED_THOUSANDS.sub("", text)
    if "U" in text:
        text = _UNION.sub(r" \\cup ", text)
    return " ".join(text.split()) if "  " in text else text.strip()


def _synonym(match: re.Match[str]) -> str:
    name = match[1]
    standard = _SYNONYMS.get(name)
    if standard is None:
        return match[0]
    if standard in ("{", "}"):
        return "\\" + standard
    return f" \\{standard} " if standard.isalpha() else f" {standard} "


def _text_macro(match: re.Match[str]) -> str:
    macro, content = (
        match[0][1:].split("{")[0].strip(),
        " ".join(match[1].replace("\\,", " ").replace("~", " ").split()),
    )
    spaced = match[1][:1] in ("~", " ")
    if content.lstrip("\\") in _FUNCTION_NAMES and not (
        content in ("min", "sec") and macro.rstrip("*") != "operatorname"
    ):
        return "\\" + content.lstrip("\\") + " "
    if not _WORDS.search(content):
        return f" {content} "
    if content[1:] in _PLAIN.values() and content[0] == "\\":
        return content + " "
    if macro in ("mathrm", "rm") and (content in _UNIT_LETTERS or (len(content) < 4 and spaced)):
        return rf"\text{{{content}}}"
    bare = content.strip("()")
    if len(bare) == 1 and macro != "text":
        return f"{content}"
    if macro in ("mathrm", "mathbf", "mathit", "bm") and "\\" in content:
        return f"{content}"
    return rf"\text{{{content}}}"


def _braced_fractions(text: str) -> str:
    r"""``\frac12``, ``\frac1{x}``, ``\dfrac{1}2`` → ``\frac{1}{2}``…"""
    out: list[str] = []
    at = 0
    while (match := _FRACTION.search(text, at)) is not None:
        out.append(text[at : match.start()] + r"\frac")
        at = match.end()
        for _ in range(2):
            while at < len(text) and text[at] == " ":
                at += 1
            if at >= len(text) or text[at] in "{}":
                end = _group_end(text, at)
                # nested fractions are braced by a later call on the inner text
                out.append("{" + _braced_fractions(text[at + 1 : end - 1]) + "}" if end > at else "")
                at = end
                continue
            token = re.compile(r"\\[A-Za-z]+|.").match(text, at)
            assert token is not None
            out.append("{" + token[0] + "}")
            at = token.end()
    out.append(text[at:])
    return "".join(out)


def _group_end(text: str, at: int) -> int:
    if at >= len(text) or text[at] != "{":
        return at
    depth = 0
    for end in range(at, len(text)):
        if text[end] in "{}" and not _escaped(text, end):
            depth += 1 if text[end] == "{" else -1
            if depth == 0:
                return end + 1
    return at
