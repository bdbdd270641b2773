"""One trajectory as a state machine: it asks for a generation or for tool calls, and is told the result.

It runs nothing itself, so the asynchronous scheduler and the deterministic waves share it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from rstar2cli.answers.extract import count_answers
from rstar2cli.core.seeds import derive_seed
from rstar2cli.dialogue.calls import ParsedCall, parse_calls, unfinished_call
from rstar2cli.dialogue.dialogue import Dialogue
from rstar2cli.dialogue.trail import TokenTrail
from rstar2cli.engines.base import Completion, Request
from rstar2cli.grading.grade import BY_CLOCK, Grade, Grader, reward
from rstar2cli.records import CallRecord, Finish, Trajectory, Turn
from rstar2cli.rollout.config import RolloutConfig
from rstar2cli.rollout.jobs import Job
from rstar2cli.rollout.tools import CallResult
from rstar2cli.sandbox.outcome import CLOCK_DEPENDENT

NO_CALL_P_ERR = 0.5


@dataclass(frozen=True, kw_only=True)
class ToolWork:
    """Calls of one turn, to be run in any order and answered together."""

    calls: list[ParsedCall]
    """The calls, in order."""
    seeds: list[int]
    """One seed a call."""


class Episode:
    """The trajectory of one job."""

    def __init__(
        self, job: Job, prompt_ids: Sequence[int], config: RolloutConfig, dialogue: Dialogue, max_length: int
    ) -> None:
        """``max_length``: longest prompt and response that the engine takes."""
        self.job = job
        self.trail = TokenTrail(prompt_ids)
        self.turns: list[Turn] = []
        self.finish: Finish | None = None
        self.lost_why: str | None = None
        self.seconds = {"generate": 0.0, "tools": 0.0}
        self._clock_decided = False
        self._config = config
        self._dialogue = dialogue
        self._budget = min(config.max_response, max_length - len(prompt_ids))
        self._begun = self._since = time.monotonic()

    @property
    def reservation(self) -> int:
        """Cache tokens that it needs at its longest."""
        return len(self.trail.prompt_ids) + self._budget

    def request(self) -> Request:
        """The next generation. Each turn draws from a seed of its own, derived from the trajectory's."""
        self._since = time.monotonic()
        room = self._budget - len(self.trail.response_ids)
        return Request(
            prompt_ids=self.trail.ids,
            max_tokens=min(room, self._config.max_turn_tokens or room),
            stop_ids=self._dialogue.stop_ids,
            seed=derive_seed(self.job.seed, "turn", len(self.turns)),
            sampling=self._config.sampling,
        )

    def on_completion(self, completion: Completion) -> ToolWork | None:
        """Take a turn; the calls to run, or null when the trajectory is finished."""
        self._lap("generate")
        self.trail.add_turn(completion.ids, completion.logprobs)
        text = self._dialogue.turn_text(completion.ids)
        calls = parse_calls(text)
        records = [_unanswered(call) for call in calls]
        open_call = unfinished_call(text)
        if open_call is not None:
            records.append(CallRecord(name=None, arguments=open_call, outcome=None, output=None))
        self.turns.append(
            Turn(
                text=text,
                policy=completion.policy,
                finish=completion.finish,
                n_tokens=len(completion.ids),
                calls=records,
            )
        )
        if completion.finish == "length":
            self.finish = "length"
        elif not calls:
            self.finish = "stop"
        elif len(self.turns) >= self._config.max_turns:
            self.finish = "turn_limit"
        if self.finish is not None:
            return None
        turn = len(self.turns) - 1
        return ToolWork(
            calls=calls, seeds=[derive_seed(self.job.seed, "tool", turn, place) for place in range(len(calls))]
        )

    def on_results(self, results: Sequence[CallResult]) -> None:
        """Take the results of the turn's calls; afterwards the trajectory is finished or wants a generation."""
        self._lap("tools")
        lost = next((result for result in results if result.output is None), None)
        if lost is not None:
            self.lose(f"tool call {lost.outcome}: {lost.detail or 'no detail'}")
            self._record(results, answered=False)
            return
        ids = self._dialogue.tool_turn([result.output or "" for result in results])
        if len(self.trail.response_ids) + len(ids) >= self._budget:  # no room for a token after it
            self.finish = "tool_overflow"
            self._record(results, answered=False)
            return
        self.trail.add_context(ids)
        self._record(results, answered=True)

    def lose(self, why: str) -> None:
        """End as lost: our failure, not the model's."""
        self.finish = "lost"
        self.lost_why = why

    def grade(self, grader: Grader) -> Future[Grade]:
        """Have the finished episode graded. Only the last turn's text counts."""
        assert self.finish is not None, "the episode is not finished"
        problem = self.job.problem
        text = self.turns[-1].text if self.turns else ""
        return grader.submit(text, problem.answer, problem.answer_kind, finish=self.finish)

    def trajectory(self, graded: Grade) -> Trajectory:
        """The record of the finished episode with its grade."""
        assert self.finish is not None, "the episode is not finished"
        problem = self.job.problem
        calls = [call for turn in self.turns for call in turn.calls if call.output is not None]
        errors = sum(call.outcome != "ok" for call in calls)
        answers = sum(count_answers(turn.text) for turn in self.turns)
        n_turns = len(self.turns)
        total = time.monotonic() - self._begun
        busy = sum(self.seconds.values())
        return Trajectory(
            id=self.job.id,
            run=self.job.run,
            step=self.job.step,
            slot=self.job.slot,
            sample=self.job.sample,
            seed=self.job.seed,
            problem_id=problem.id,
            source=problem.source,
            prompt_ids=self.trail.prompt_ids,
            response_ids=self.trail.response_ids,
            mask=self.trail.mask,
            logprobs=self.trail.logprobs,
            turns=self.turns,
            finish=self.finish,
            gold=problem.answer,
            answer=graded.answer,
            verdict=graded.verdict,
            reason=graded.reason,
            reward=reward(graded),
            n_turns=n_turns,
            n_tool_calls=len(calls),
            n_tool_errors=errors,
            n_answers=answers,
            p_err=errors / len(calls) if calls else NO_CALL_P_ERR,
            p_format=min(1.0, (answers - 1) / n_turns) if answers else 1.0,
            deterministic=self._config.deterministic and not self._clock_decided and graded.reason not in BY_CLOCK,
            extra={} if self.lost_why is None else {"lost": self.lost_why},
            timings={"total": total, **self.seconds, "queue": max(0.0, total - busy)},
        )

    def _record(self, results: Sequence[CallResult], answered: bool) -> None:
        """Note what became of the calls of the last turn; unanswered ones keep only their seconds."""
        for record, result in zip(self.turns[-1].calls, results, strict=False):  # an unfinished call has no result
            record.seconds = result.seconds
            if answered or result.output is None:
                record.outcome = result.outcome
            if answered:
                record.output = result.output
            if result.outcome in CLOCK_DEPENDENT:
                self._clock_decided = True

    def _lap(self, what: str) -> None:
        now = time.monotonic()
        self.seconds[what] += now - self._since
        self._since = now


def _unanswered(call: ParsedCall) -> CallRecord:
    return CallRecord(name=call.name, arguments=call.arguments_text, outcome=None, output=None)
