"""How a problem becomes a prompt and a tool result becomes text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class DialogueConfig:
    """Prompts and tool texts. A model must be trained and run with the same one."""

    system: Literal["paper", "short"] = "paper"
    """System prompt: `paper` as published in content; `short` for small models (a fifth of the tokens)."""
    reason_open: str = "<reason>"
    """What the template opens after every assistant header (prompt, mask 0)."""
    output_chars: int = 1024
    """Characters of a tool's text shown to the model, head and tail kept (256 as released)."""
    errors: Literal["line", "traceback"] = "line"
    """An exception as `Type at line N: message` and the line, or a traceback of user frames."""
