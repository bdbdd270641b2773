"""Configuration of grading. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass, field

from rstar2cli.answers.extract import ALL_FALLBACKS, Fallback
from rstar2cli.answers.policy import Policy


@dataclass(frozen=True, kw_only=True)
class GradingConfig:
    """Where an answer is looked for, and what counts as the same."""

    fallbacks: tuple[Fallback, ...] = ()
    """What counts as the answer where `<answer>` has no `\\boxed{}`, tried in this order: answer_tag, boxed, phrase,
    math, number. None by default: training and our prompts demand the tag."""
    policy: Policy = field(default_factory=Policy)
    """Customs of equality."""


@dataclass(frozen=True, kw_only=True)
class VerifyConfig:
    """Configuration of ``rstar2 verify``: as for grading, but texts of any model are read."""

    fallbacks: tuple[Fallback, ...] = ALL_FALLBACKS
    """What counts as the answer of a response where `<answer>` has no `\\boxed{}`, tried in this order."""
    policy: Policy = field(default_factory=Policy)
    """Customs of equality."""
