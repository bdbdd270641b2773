"""Every command by name: its module and summary. All that ``rstar2 --help`` reads.

A module is imported only when its command runs or its own help is asked for. It
holds ``main`` (a function that typer can read) or, for groups, ``app`` (a typer app).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One command."""

    module: str
    """Module below ``rstar2cli.cli``."""
    summary: str
    """One line for ``rstar2 --help``."""
    section: str
    """Heading it is listed under."""


def _entries(section: str, rows: dict[str, str]) -> dict[str, Entry]:
    return {
        name: Entry(module=name.replace("-", "_"), summary=summary, section=section) for name, summary in rows.items()
    }


COMMANDS: dict[str, Entry] = {
    **_entries(
        "Stages",
        {
            "curate": "Make, read, filter and split problems; write SFT conversations.",
            "sft": "Fine-tune a model on conversations.",
            "rollout": "Let a model solve problems with the Python tool.",
            "sandbox-serve": "Serve the code sandbox over HTTP.",
            "train-rl": "Train a model with GRPO-RoC.",
            "eval": "Measure a model on problems or benchmarks.",
        },
    ),
    **_entries(
        "Inspect",
        {
            "head": "Print the first records.",
            "count": "Count records, in groups if wanted.",
            "schema": "Print the fields of a record kind or of a file.",
            "stats": "Summarise every column.",
            "sql": "Query shards with SQL (DuckDB).",
            "show": "Show one trajectory or conversation.",
            "diff": "Compare runs: scores, flips, paired tests.",
            "plot": "Draw a metric's curve.",
            "validate": "Check files and list every bad row.",
            "verify": "Judge answers against golds.",
        },
    ),
    **_entries(
        "Project",
        {
            "model": "Make, import, export and describe models.",
            "recipe": "List and copy the packaged experiments.",
            "doctor": "Say what this machine has and lacks.",
            "smoke": "Run the whole recipe on this machine.",
        },
    ),
}
