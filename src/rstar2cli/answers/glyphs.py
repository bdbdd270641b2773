"""Unicode to LaTeX: digits of any script, signs, superscripts, fractions, Greek letters, set symbols."""

from __future__ import annotations

import unicodedata

_SIGNS = {
    "−‐‑‒–—﹣－": "-",
    "×✕⨯": r" \times ",
    "·⋅∙•": r" \cdot ",
    "÷": r" \div ",
    "≤⩽≦": r" \le ",
    "≥⩾≧": r" \ge ",
    "≠": r" \neq ",
    "≈": r" \approx ",
    "±": r" \pm ",
    "∓": r" \mp ",
    "∞": r"\infty ",
    "∅⌀": r"\emptyset ",
    "∪": r" \cup ",
    "∩": r" \cap ",
    "∖": r" \setminus ",
    "∈": r" \in ",
    "°º˚": r"^{\circ}",
    "′": "'",
    "∶": ":",
    "⁄∕": "/",
    "…⋯": r" \ldots ",
    "∑": r"\sum ",
    "∏": r"\prod ",
    "∫": r"\int ",
    "ℝ": r"\mathbb{R}",
    "⌊": r"\lfloor ",
    "⌋": r"\rfloor ",
    "⌈": r"\lceil ",
    "⌉": r"\rceil ",
    "⟨〈": r"\langle ",
    "⟩〉": r"\rangle ",
    "∣": "|",
    "∗＊": "*",
    "“”": '"',
    "‘’": "'",
    "，、": ",",
    "；": ";",
    "：": ":",
    "％﹪": "%",
    "　": " ",
    "✓✔✅": " ",
}
_GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "θ": "theta", "λ": "lambda", "μ": "mu",
    "π": "pi", "ρ": "rho", "σ": "sigma", "τ": "tau", "φ": "phi", "ω": "omega", "Δ": "Delta", "Σ": "Sigma",
    "Ω": "Omega", "ψ": "psi", "η": "eta", "ξ": "xi",
}  # fmt: skip
_RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿⁱ", "0123456789+-ni", strict=True))
_LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉₊₋", "0123456789+-", strict=True))
_ROOTS = {"√": r"\sqrt", "∛": r"\sqrt[3]", "∜": r"\sqrt[4]"}
_SPACES = frozenset("\u00a0\u1680\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\t\n\r\f\v")
_INVISIBLE = frozenset("\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e\u200f")

_TABLE: dict[int, str] = {
    **{ord(sign): latex for signs, latex in _SIGNS.items() for sign in signs},
    **{ord(letter): rf"\{name} " for letter, name in _GREEK.items()},
    **dict.fromkeys(map(ord, _SPACES), " "),
    **dict.fromkeys(map(ord, _INVISIBLE), ""),
}


def ascii_math(text: str) -> str:
    """``½`` → ``\\frac{1}{2}``, ``x²`` → ``x^{2}``, ``√2`` → ``\\sqrt{2}``, ``٧`` → ``7``; other letters stay."""
    if text.isascii():
        return text.translate(_TABLE) if any(mark in text for mark in "\t\n\r\f\v") else text
    text = text.translate(_TABLE)
    out: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char in _ROOTS:
            radicand, at = _radicand(text, at + 1)
            out.append(_ROOTS[char] + radicand)
            continue
        for table, mark in ((_RAISED, "^"), (_LOWERED, "_")):
            if char in table:
                end = at
                while end < len(text) and text[end] in table:
                    end += 1
                out.append(f"{mark}{{{''.join(table[c] for c in text[at:end])}}}")
                at = end
                break
        else:
            out.append(char if char.isascii() else _plain(char))
            at += 1
    return "".join(out)


def _radicand(text: str, at: int) -> tuple[str, int]:
    """What a root sign covers: a bracketed group stays as it stands, else a number or one letter."""
    while at < len(text) and text[at] == " ":
        at += 1
    if at < len(text) and text[at] in "({":
        opening, closing = text[at], {"(": ")", "{": "}"}[text[at]]
        depth = 0
        for end in range(at, len(text)):
            depth += {opening: 1, closing: -1}.get(text[end], 0)
            if depth == 0:
                return f"{{{ascii_math(text[at + 1 : end])}}}", end + 1
        return "", at
    end = at
    while end < len(text) and text[end].isdigit():
        end += 1
    end = max(end, min(at + 1, len(text)))
    return f"{{{ascii_math(text[at:end])}}}", end


def _plain(char: str) -> str:
    value = unicodedata.decimal(char, None)
    if value is not None:
        return str(value)
    folded = unicodedata.normalize("NFKC", char)
    if "\u2044" in folded:  # a vulgar fraction
        above, _, below = folded.partition("\u2044")
        return rf"\frac{{{above}}}{{{below}}}"
    return folded if folded.isascii() else char
