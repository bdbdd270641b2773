"""Configuration of ``rstar2 curate``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from rstar2cli.dialogue.config import DialogueConfig
from rstar2cli.sandbox.config import SandboxConfig


@dataclass(frozen=True, kw_only=True)
class FieldsConfig:
    """Which columns of foreign rows hold what; dotted paths reach into objects (`reward_model.ground_truth`)."""

    prompt: str | None = None
    """Column of the question; null = the first of question, problem, prompt, query, instruction,
    input."""
    answer: str | None = None
    """Column of the answer; null = the first of answer, final_answer, expected_answer, ground_truth, target,
    reference_solution, solution."""
    id: str | None = None
    """Column of the identifier; null = `id` where there is one, else file and line."""
    answer_rule: Literal["auto", "plain", "hashes", "boxed"] = "auto"
    """Where the answer stands in its column: `plain` the whole text, `hashes` after the last `####` (GSM8K),
    `boxed` in the last `\\boxed{}`; `auto` = hashes or boxed where the text has one, else plain."""


@dataclass(frozen=True, kw_only=True)
class FaultsConfig:
    """First calls that fail and are then mended, so that a model starts with realistic faults."""

    share: float = 0.25
    """Share of conversations with a failing first call."""
    train: bool = True
    """Whether the loss counts the failing turn too; the mended turn always counts."""

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ValueError(f"faults.share must be from 0 to 1, not {self.share}")


@dataclass(frozen=True, kw_only=True)
class CurateConfig:
    """Which problems are taken and what is written."""

    emit: Literal["problems", "conversations"] = "problems"
    """Records to write: problems, or SFT conversations made from problems of the built-in generator."""
    split: Literal["train", "heldout", "all"] = "all"
    """Side of the split to keep: by family and parameters for `synth:` problems, by the normalized prompt for
    others; a fifth is held out."""
    families: tuple[str, ...] = ()
    """Families of `synth:` to make; empty = all."""
    count: int = 1000
    """Problems that `synth:` makes when there is no --limit."""
    answer_kind: Literal["integer", "any"] = "integer"
    """Which foreign rows are kept: `integer` rejects every answer that is no integer; `any` keeps others too."""
    golds: Literal["graded", "any"] = "graded"
    """`graded` rejects a gold that the grader does not accept as its own answer; such problems could only ever be
    undecided. `any` keeps it."""
    duplicates: Literal["reject", "keep"] = "reject"
    """What becomes of a foreign row whose prompt was seen before (case and spaces aside)."""
    fields: FieldsConfig = field(default_factory=FieldsConfig)
    """Columns of foreign rows."""
    faults: FaultsConfig = field(default_factory=FaultsConfig)
    """Failing first calls in conversations."""
    sandbox: SandboxConfig = field(default_factory=SandboxConfig)
    """Where the programs of conversations run."""
    dialogue: DialogueConfig = field(default_factory=DialogueConfig)
    """How tool results become text; the model must be trained and run with the same."""

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"count must be at least 1, not {self.count}")
