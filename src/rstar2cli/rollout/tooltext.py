"""What the model reads about a call: the table "Text of a tool response" of the definitions.

No times, no paths, no memory addresses of ours. The status lines always stay; the output
below them is cut to ``DialogueConfig.output_chars`` characters, head and tail kept.
"""

from __future__ import annotations

from rstar2cli.dialogue.config import DialogueConfig
from rstar2cli.sandbox.outcome import Outcome

_SUCCESS = "Tool call success"
_FAILURE = "Tool call failure"


def outcome_text(outcome: Outcome, config: DialogueConfig) -> str:
    """Text of an execution. Raises ``ValueError`` for infrastructure outcomes: the model never sees those."""
    if outcome.infrastructure:
        raise ValueError(f"{outcome.kind} is not for the model")
    status = _SUCCESS if outcome.kind == "ok" else f"{_FAILURE}\nreason: {_reason(outcome)}"
    output = cut(_output(outcome, config), config.output_chars)
    return f"{status}\n{output}" if output else status


def bad_json_text(message: str, config: DialogueConfig) -> str:
    """Text for a call that is not valid JSON; ``message`` is the parser's."""
    return "Failed to decode tool call: " + cut(message, config.output_chars)


def refused_text(message: str, config: DialogueConfig) -> str:
    """Text for an unknown tool or wrong arguments."""
    return "Error when executing tool: " + cut(message, config.output_chars)


def cut(text: str, limit: int) -> str:
    """At most ``limit`` characters of the text, head and tail, and between them how many are missing."""
    if len(text) <= limit:
        return text
    head = (limit + 1) // 2
    tail = limit - head
    return f"{text[:head]}…[{len(text) - limit} characters cut]…{text[len(text) - tail :]}"


def _reason(outcome: Outcome) -> str:
    if outcome.kind == "error":
        return "error"
    if outcome.kind == "exit":
        return f"exit status {outcome.exit_code}"
    if outcome.kind == "signal":
        return f"killed by signal {outcome.signal}"
    words = {"timeout": "timeout after", "cpu": "cpu limit of", "memory": "memory limit of"}
    return f"{words.get(outcome.kind, 'output limit of')} {outcome.limit}"


def _output(outcome: Outcome, config: DialogueConfig) -> str:
    stderr = outcome.stderr
    error = outcome.traceback if config.errors == "traceback" else outcome.error
    if outcome.kind == "error" and error:
        stderr = f"{_end_line(stderr)}{error}"
    lines = []
    if outcome.stdout.rstrip("\n"):
        lines.append("stdout: " + outcome.stdout.rstrip("\n"))
    if stderr.rstrip("\n"):
        lines.append("stderr: " + stderr.rstrip("\n"))
    return "\n".join(lines)


def _end_line(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"
