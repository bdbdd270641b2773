"""What a policy did with one problem, to the token."""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from rstar2cli.records.base import Float32, Int32, Json, Record

Finish = Literal["stop", "length", "turn_limit", "tool_overflow", "lost"]
TurnFinish = Literal["stop", "length"]
Verdict = Literal["correct", "wrong", "undecided"]


class CallRecord(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One tool call that was opened in a turn."""

    name: str | None
    """Name of the tool; null if the call could not be decoded."""
    arguments: str
    """Arguments as the model wrote them (the whole call text if it could not be decoded)."""
    outcome: str | None
    """`ok`, `error`, `exit`, `timeout`, `cpu`, `memory`, `output_limit`, `signal`, `bad_json`,
    `unknown_tool`, `bad_arguments`; infrastructure: `overloaded`, `setup_failed`, `lost`;
    null if the call was not answered."""
    output: str | None
    """Text given to the model; null if the call was not answered."""
    seconds: float | None = None
    """Wall time of the execution; null if nothing ran. Outside the digest."""


class Turn(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One generation, from the opened assistant header to its stop."""

    text: str
    """Decoded text of the tokens the model wrote in this turn."""
    policy: str
    """Policy that wrote it: digest, or `base+run@update` inside a run."""
    finish: TurnFinish
    """Why generation ended: `stop` token or `length`."""
    n_tokens: int
    """Tokens the model wrote, the stop token included."""
    calls: list[CallRecord] = []
    """Calls opened in this turn, in order."""


class Trajectory(Record, kw_only=True, tag="trajectory/1"):
    """One rollout of one problem. Exact tokens are the truth; texts are decoded for people."""

    record_name: ClassVar[str] = "trajectory"
    record_version: ClassVar[int] = 1
    volatile: ClassVar[tuple[str, ...]] = ("timings", "turns.calls.seconds")

    id: str
    """`run:step:slot/sample`."""
    run: str
    """Name of the run."""
    step: int
    """Training step (0 for a plain rollout)."""
    slot: int
    """Place of the prompt within the step; with run and step it names the group."""
    sample: int
    """Number within the group."""
    seed: int
    """53-bit seed of this trajectory; a retry keeps it."""
    problem_id: str
    """Id of the problem."""
    source: str
    """Source of the problem."""
    prompt_ids: list[Int32]
    """Tokens of the rendered prompt, the first assistant header included."""
    response_ids: list[Int32]
    """All tokens after the prompt: the model's, the tool's and the template's."""
    mask: list[bool]
    """True where the model wrote the response token (its stop token included)."""
    logprobs: list[Float32 | None]
    """Log-probability of each model token under the distribution sampled from; null where mask is false."""
    turns: list[Turn]
    """The turns in order."""
    finish: Finish
    """`stop`, `length`, `turn_limit`, `tool_overflow` (a tool response would not fit), `lost` (infrastructure)."""
    gold: str
    """The gold answer it was graded against."""
    answer: str | None
    """Extracted answer; null if none."""
    verdict: Verdict
    """`correct`, `wrong`, or `undecided` (our fault, never the model's)."""
    reason: str | None
    """Why it is wrong or undecided; null if correct."""
    reward: float | None
    """1 correct, 0 wrong, null undecided or lost."""
    n_turns: int
    """Turns taken."""
    n_tool_calls: int
    """Answered tool calls."""
    n_tool_errors: int
    """Answered calls whose response reports a failure of the call."""
    n_answers: int
    """Complete `<answer>` blocks in the model's own text."""
    p_err: float
    """Tool errors / answered calls; 0.5 if none was answered."""
    p_format: float
    """1 without a complete answer, else min(1, (answers − 1) / turns)."""
    deterministic: bool
    """Generated in deterministic mode and no tool outcome depended on the clock."""
    timings: Json = msgspec.field(default_factory=dict)
    """Seconds: `total`, `generate`, `tools`, `queue`. Outside the digest."""
    extra: Json = msgspec.field(default_factory=dict)
    """Anything else."""

    @property
    def group(self) -> str:
        """`run:step:slot`."""
        return f"{self.run}:{self.step}:{self.slot}"
