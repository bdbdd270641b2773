"""The words of the prompts: two system prompts, the tools section, the math instruction.

`paper` says in content what the report's prompts say, in our words. `short` says it in a
fraction of the tokens, for models so small that the prompt would dominate their work.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from rstar2cli.dialogue.tools import PYTHON_TOOL, PYTHON_TOOL_SCHEMA

Style = Literal["paper", "short"]

_SYSTEM = {
    "paper": "A user asks a question and the assistant solves it. The assistant first thinks about the problem, "
    "step by step, and then gives the user the final answer. The reasoning goes inside <reason> </reason> tags "
    "and the final answer inside <answer> </answer> tags, like this: <reason> the reasoning </reason> "
    "<answer> the final answer </answer>. The assistant may use tools while reasoning, in as many turns as it "
    "needs, and gives the answer once.",
    "short": "Think in <reason></reason>, then answer in <answer></answer>.",
}

_INSTRUCTION = {
    "paper": "Solve the problem below. The answer must be inside <answer> </answer> tags, and the final result "
    "inside \\boxed{} within them: it is extracted from there.\n\n",
    "short": "Answer as \\boxed{}.\n",
}

_SHORT_PYTHON = (
    f'Run Python: <tool_call>{{"name": "{PYTHON_TOOL}", "arguments": {{"code": "...", "input": ""}}}}</tool_call>'
)


def instruction(style: Style) -> str:
    """What stands before a problem in its user message. Chat and tool prompts do not carry it."""
    return _INSTRUCTION[style]


def system_text(style: Style, tools: list[dict[str, Any]], own: str | None = None) -> str:
    """The system message: ``own`` (of the conversation) or ours, then the tools section if tools are offered."""
    text = _SYSTEM[style] if own is None else own
    if not tools:
        return text
    section = _short_tools(tools) if style == "short" else _paper_tools(tools)
    return f"{text}\n{section}" if text else section


def _paper_tools(tools: list[dict[str, Any]]) -> str:
    signatures = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
    return (
        "\n# Tools\n\n"
        "You may call one or more functions to help with the question. Their signatures are given as JSON "
        f"inside <tools></tools> tags:\n<tools>\n{signatures}\n</tools>\n\n"
        "For each call write a JSON object with the function's name and arguments inside "
        "<tool_call></tool_call> tags:\n<tool_call>\n"
        '{"name": <function-name>, "arguments": <arguments-json-object>}\n</tool_call>'
    )


def _short_tools(tools: list[dict[str, Any]]) -> str:
    if tools == [PYTHON_TOOL_SCHEMA]:
        return _SHORT_PYTHON
    signatures = json.dumps(tools, ensure_ascii=False)
    return f'Tools: {signatures}\nCall: <tool_call>{{"name": ..., "arguments": {{...}}}}</tool_call>'
