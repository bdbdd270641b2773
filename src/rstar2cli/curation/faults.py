"""Realistic faults of a first tool call, and what a solver says when it mends them.

A fault turns working code into the text of a call's arguments that fails for real: the
error that the conversation shows is the sandbox's own. Each returns null where the code
gives it nothing to break.
"""

from __future__ import annotations

import ast
import builtins
import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass

Breaker = Callable[[str, random.Random], str | None]
_SHORTEST_TYPO = 3


def arguments_text(code: str) -> str:
    """Arguments of a call of the Python tool, as JSON text."""
    return json.dumps({"code": code, "input": ""}, ensure_ascii=False)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One kind of fault."""

    name: str
    """Name, as the conversation's extra tells it."""
    arguments: Breaker
    """The failing arguments for working code; null if the fault does not apply to it."""
    outcome: str
    """What must become of the call: `error`, `bad_json`, `bad_arguments`, or `silent` (nothing printed)."""
    mends: tuple[str, ...]
    """What the solver says before the call that works."""


def _of_code(broken: Callable[[str, random.Random], str | None]) -> Breaker:
    def arguments(code: str, rng: random.Random) -> str | None:
        text = broken(code, rng)
        return None if text is None or text == code else arguments_text(text)

    return arguments


def _misspelled(code: str, rng: random.Random) -> str | None:
    """One use of a name with a letter left out."""
    lines = code.split("\n")
    known = set(dir(builtins)) | {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}
    uses = [
        (node.lineno - 1, node.col_offset, node.id)
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and len(node.id) >= _SHORTEST_TYPO
    ]
    if not uses:
        return None
    line, column, name = rng.choice(sorted(uses))
    place = rng.randrange(1, len(name))
    typo = name[:place] + name[place + 1 :]
    if typo in known:
        return None
    text = lines[line]
    lines[line] = text[:column] + typo + text[column + len(name) :]
    return "\n".join(lines)


def _without_import(code: str, _: random.Random) -> str | None:
    kept = [line for line in code.split("\n") if not re.match(r"(import|from) ", line)]
    return "\n".join(kept)


def _unclosed(code: str, _: random.Random) -> str | None:
    """The last closing parenthesis left out."""
    place = code.rfind(")")
    return None if place < 0 else code[:place] + code[place + 1 :]


def _without_colon(code: str, rng: random.Random) -> str | None:
    lines = code.split("\n")
    heads = [number for number, line in enumerate(lines) if line.endswith(":")]
    if not heads:
        return None
    number = rng.choice(heads)
    lines[number] = lines[number][:-1]
    return "\n".join(lines)


def _unprinted(code: str, _: random.Random) -> str | None:
    """The result kept in a variable where the last line printed it."""
    lines = code.split("\n")
    printed = re.fullmatch(r"print\((.*)\)", lines[-1])
    if printed is None:
        return None
    lines[-1] = f"answer = {printed[1]}"
    return "\n".join(lines)


def _number_as_text(code: str, rng: random.Random) -> str | None:
    """A number of two or more digits in quotes."""
    numbers = list(re.finditer(r"(?<![\w.'])\d{2,}(?![\w.'])", code))
    if not numbers:
        return None
    match = rng.choice(numbers)
    return code[: match.start()] + f"'{match[0]}'" + code[match.end() :]


def _bare_newline(code: str, _: random.Random) -> str | None:
    """A line break inside the JSON text where `\\n` belongs."""
    return arguments_text(code).replace("\\n", "\n", 1) if "\n" in code else None


def _unclosed_text(code: str, _: random.Random) -> str | None:
    """The quote after the code left out."""
    return f'{{"code": {json.dumps(code, ensure_ascii=False)[:-1]}, "input": ""}}'


def _without_input(code: str, _: random.Random) -> str | None:
    return json.dumps({"code": code}, ensure_ascii=False)


FAULTS: tuple[Fault, ...] = (
    Fault(
        name="misspelled_name",
        arguments=_of_code(_misspelled),
        outcome="error",
        mends=("I misspelled a name. I correct it.", "That name has a typo; I fix it and run again."),
    ),
    Fault(
        name="missing_import",
        arguments=_of_code(_without_import),
        outcome="error",
        mends=("I forgot the import. I add it.", "The name must be imported first."),
    ),
    Fault(
        name="unclosed_parenthesis",
        arguments=_of_code(_unclosed),
        outcome="error",
        mends=("A parenthesis was not closed. I add it.", "I left out a closing parenthesis; here is the fixed code."),
    ),
    Fault(
        name="missing_colon",
        arguments=_of_code(_without_colon),
        outcome="error",
        mends=("I forgot a colon. I add it.", "The colon at the end of that line is missing."),
    ),
    Fault(
        name="not_printed",
        arguments=_of_code(_unprinted),
        outcome="silent",
        mends=("Nothing was printed. I print the result.", "The program ran but I forgot to print the answer."),
    ),
    Fault(
        name="number_as_text",
        arguments=_of_code(_number_as_text),
        outcome="error",
        mends=("A number was written as text. I remove the quotes.", "That value must be a number, not a string."),
    ),
    Fault(
        name="bare_newline",
        arguments=_bare_newline,
        outcome="bad_json",
        mends=(
            "The call was not valid JSON: the line break must be escaped.",
            "I must write line breaks as \\n in JSON.",
        ),
    ),
    Fault(
        name="unclosed_text",
        arguments=_unclosed_text,
        outcome="bad_json",
        mends=("The JSON was broken: a quote is missing.", "I forgot to close the quote in the call."),
    ),
    Fault(
        name="missing_input",
        arguments=_without_input,
        outcome="bad_arguments",
        mends=("The call needs the input too. I add it.", "I left out an argument; the input may be empty."),
    ),
)
