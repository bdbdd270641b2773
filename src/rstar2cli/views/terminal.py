"""A transcript for a terminal (colours, highlighted code) or a pipe (plain text)."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rstar2cli.views import escape
from rstar2cli.views.transcript import Block

if TYPE_CHECKING:
    from rich.console import Console

MASK_OPEN, MASK_CLOSE = "⟦", "⟧"
"""Brackets around what was trained on where there are no colours."""
_STYLES = {"prompt": "dim", "reason": "italic", "text": "", "answer": "bold green"}


def draw(blocks: Sequence[Block], *, width: int | None = None, color: bool = False) -> str:
    """The transcript as text, ending with a newline.

    ``width`` is the terminal's in columns; ``None`` leaves lines as long as they are and
    uses no colours. Text from models and tools is escaped either way.
    """
    if width is None or not color:
        return "".join(_plain(block) for block in blocks)
    from rich.console import Console

    buffer = io.StringIO()
    console = Console(file=buffer, width=width, force_terminal=True, highlight=False, markup=False, emoji=False)
    for block in blocks:
        _rich(block, console)
    return buffer.getvalue()


def _plain(block: Block) -> str:
    title = escape.one_line(block.title)
    if block.kind == "heading":
        return f"── {title} ──\n"
    lines = [f"[{title}]"] if title else []
    if block.kind == "facts":
        size = max((len(name) for name, _ in block.facts), default=0)
        lines += [f"  {escape.one_line(name):<{size}}  {escape.one_line(value)}" for name, value in block.facts]
    elif block.kind == "tokens":
        lines.append(_marked(block))
    elif block.text:
        text = escape.plain(block.text)
        indent = "    " if block.kind in ("call", "output") else ""
        lines += [indent + line for line in text.split("\n")]
    return "\n".join(lines) + "\n"


def _marked(block: Block) -> str:
    parts = []
    inside = False
    for span in block.spans:
        if span.trained != inside:
            parts.append(MASK_OPEN if span.trained else MASK_CLOSE)
            inside = span.trained
        parts.append(escape.plain(span.text))
    return "".join(parts) + (MASK_CLOSE if inside else "")


def _rich(block: Block, console: Console) -> None:
    from rich.padding import Padding
    from rich.rule import Rule
    from rich.syntax import Syntax
    from rich.text import Text

    title = escape.one_line(block.title)
    if block.kind == "heading":
        console.print(Rule(Text(title, style="bold"), align="left"))
        return
    if title:
        console.print(Text(title, style="red" if block.failed else "cyan"))
    if block.kind == "facts":
        size = max((len(name) for name, _ in block.facts), default=0)
        for name, value in block.facts:
            line = Text(f"  {escape.one_line(name):<{size}}  ", style="dim")
            console.print(line.append(escape.one_line(value), style="not dim"))
    elif block.kind == "tokens":
        text = Text()
        for number, span in enumerate(block.spans):
            style = ("black on green", "black on bright_green")[number % 2] if span.trained else "dim"
            text.append(escape.plain(span.text), style=style)
        console.print(text)
    elif block.language and block.text:
        code = Syntax(escape.plain(block.text), block.language, background_color="default", word_wrap=True)
        console.print(Padding(code, (0, 0, 0, 2)))
    elif block.text:
        style = "red" if block.failed else _STYLES.get(block.kind, "")
        indent = 2 if block.kind in ("call", "output") else 0
        console.print(Padding(Text(escape.plain(block.text), style=style), (0, 0, 0, indent)))
