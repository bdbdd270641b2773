"""The one tool of the paper: its name, its schema, and the check of a call's arguments."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

PYTHON_TOOL = "execute_python_code_with_standard_io"
"""Name of the tool, as in the paper."""

PYTHON_TOOL_SCHEMA: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": PYTHON_TOOL,
        "description": "Execute Python code with standard input and return what it prints. Each call starts "
        "from nothing: no variable, import or file of an earlier call is kept.",
        "parameters": {
            "type": "object",
            "properties": {
                "code": {"type": "string", "description": "The complete Python program to execute."},
                "input": {"type": "string", "description": "The standard input of the program; may be empty."},
            },
            "required": ["code", "input"],
        },
    },
}
"""JSON schema of the tool, as the system prompt shows it."""

PYTHON_TOOLS_JSON = json.dumps([PYTHON_TOOL_SCHEMA])
"""The ``tools`` field of a conversation that offers the Python tool alone."""


class CallProblem(Exception):
    """A well-formed call that can't be run; the message is what the model reads after the prefix."""

    def __init__(self, outcome: str, message: str) -> None:
        super().__init__(message)
        self.outcome = outcome
        """`unknown_tool` or `bad_arguments`, for the record of the call."""
        self.message = message


@dataclass(frozen=True, kw_only=True)
class PythonCall:
    """Checked arguments of the Python tool."""

    code: str
    """Program to run."""
    input: str
    """Its standard input."""


def check_call(name: str, arguments: dict[str, Any]) -> PythonCall:
    """The arguments of a call of the Python tool.

    Both are required strings, as in the paper. Raises :class:`CallProblem` for an unknown
    tool and for missing, unknown or ill-typed arguments, all of them in one message.
    """
    if name != PYTHON_TOOL:
        raise CallProblem("unknown_tool", f"unknown tool {json.dumps(name)}, known: {PYTHON_TOOL}")
    faults = []
    for key in ("code", "input"):
        if key not in arguments:
            faults.append(f'missing argument "{key}"')
        elif not isinstance(arguments[key], str):
            faults.append(f'argument "{key}" must be a string, got {_json_type(arguments[key])}')
    faults += [f"unknown argument {json.dumps(key)}" for key in arguments if key not in ("code", "input")]
    if faults:
        raise CallProblem("bad_arguments", "; ".join(faults))
    return PythonCall(code=arguments["code"], input=arguments["input"])


def _json_type(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "a boolean", int: "a number", float: "a number", list: "an array", dict: "an object"}
    return names.get(type(value), "a string")
