"""A transcript as one self-contained HTML page: no script, no outside resource, everything escaped."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rstar2cli.views import escape
from rstar2cli.views.transcript import Block

_CSS = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h2 { font-size: 1rem; border-bottom: 1px solid #ccc; margin: 2rem 0 .5rem; }
h3 { font-size: .8rem; font-weight: 600; color: #467; margin: .8rem 0 .2rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; padding: .5rem .8rem; border-radius: 4px; }
pre.prompt { color: #666; border-left: 3px solid #ccc; }
pre.reason, pre.text { font-family: inherit; }
pre.call { background: #f4f6fa; }
pre.output { background: #eef6ee; }
pre.output.failed { background: #fbecec; }
pre.answer { background: #e2f3e2; font-weight: 600; }
td { padding: 0 1rem 0 0; vertical-align: top; overflow-wrap: anywhere; }
td:first-child { color: #666; white-space: nowrap; }
span.t { background: #bfe8bf; } span.t:nth-of-type(odd) { background: #a5dca5; } span.p { color: #777; }
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(blocks: Sequence[Block], *, title: str) -> str:
    """The whole page as text."""
    body = "\n".join(_block(block) for block in blocks)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{escape.html(title)}</title>\n<style>{_CSS}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _block(block: Block) -> str:
    title = escape.html(escape.one_line(block.title))
    if block.kind == "heading":
        return f"<h2>{title}</h2>"
    head = f"<h3>{title}</h3>\n" if title else ""
    if block.kind == "facts":
        rows = "".join(f"<tr><td>{escape.html(n)}</td><td>{escape.html(v)}</td></tr>" for n, v in block.facts)
        return f"{head}<table>{rows}</table>"
    if block.kind == "tokens":
        spans = "".join(f'<span class="{"t" if s.trained else "p"}">{escape.html(s.text)}</span>' for s in block.spans)
        return f'{head}<pre class="tokens">{spans}</pre>'
    if not block.text:
        return head
    failed = " failed" if block.failed else ""
    code = f"<code>{_code(block)}</code>" if block.language else escape.html(block.text)
    return f'{head}<pre class="{block.kind}{failed}">{code}</pre>'


def _code(block: Block) -> str:
    """Highlighted code: inline styles only, every token escaped by rich's exporter."""
    from rich.cells import cell_len
    from rich.console import Console
    from rich.syntax import Syntax

    text = escape.plain(block.text).expandtabs(4)
    width = max(map(cell_len, text.split("\n"))) + 1  # never wrapped here: the page wraps
    console = Console(file=io.StringIO(), record=True, width=width, markup=False)
    console.print(Syntax(text, str(block.language), theme="default", background_color="default"))
    exported = console.export_html(inline_styles=True, code_format="{code}")
    return "\n".join(line.rstrip() for line in exported.rstrip("\n").split("\n"))
