"""SFT conversations from problems of the built-in generator, with what the sandbox really printed."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from rstar2cli.core import drain
from rstar2cli.core.errors import EnvironmentMissing
from rstar2cli.core.seeds import derive_seed, generator
from rstar2cli.curation.config import FaultsConfig
from rstar2cli.curation.faults import FAULTS, Fault, arguments_text
from rstar2cli.curation.synth.family import CrossCheckError, Family, Params
from rstar2cli.curation.synth.registry import FAMILIES
from rstar2cli.dialogue.calls import format_call, parse_calls
from rstar2cli.dialogue.config import DialogueConfig
from rstar2cli.dialogue.dialogue import conversation_of
from rstar2cli.dialogue.tools import PYTHON_TOOL
from rstar2cli.records import Conversation, Message, Problem, ToolCall
from rstar2cli.rollout.tools import CallResult, ToolRunner
from rstar2cli.rollout.tooltext import outcome_text
from rstar2cli.sandbox.outcome import CLOCK_DEPENDENT, INFRASTRUCTURE, Outcome, Sandbox
from rstar2cli.shards.rejects import RAW_CHARS, Reject

_CLOSINGS = (
    "It prints {answer}.",
    "The output is {answer}.",
    "So the answer is {answer}.",
)
_TOOL_RETRIES = 3


class Unusable(ValueError):
    """A problem that no conversation can be made from; the text says why."""


class Author:
    """Writes conversations. Everything random is keyed by the seed and the problem's id. Safe to use from threads."""

    def __init__(self, sandbox: Sandbox, dialogue: DialogueConfig, faults: FaultsConfig, seed: int) -> None:
        self._runner = ToolRunner(sandbox, dialogue, retries=_TOOL_RETRIES)
        self._dialogue = dialogue
        self._faults = faults
        self._seed = seed

    def write(self, problem: Problem) -> Conversation:
        """The conversation of one problem: reasoning, call, real output, answer; perhaps a mended fault first.

        Raises ``Unusable`` if the problem has no family or its program does not print its answer, and
        ``EnvironmentMissing`` if the sandbox fails.
        """
        family, params = _family_of(problem)
        rng = generator(self._seed, "conversation", problem.id)
        code = family.fill(rng.choice(family.programs), params)
        reason = family.fill(rng.choice(family.reasons), params)
        faulty = rng.random() < self._faults.share
        opening = self._fault(problem, code, reason, rng) if faulty else None
        messages: list[Message] = []
        fault = None
        if opening is not None:
            fault, messages = opening
            reason = rng.choice(fault.mends)
        messages += self._solved(problem, code, reason, first=not messages)
        closing = rng.choice(_CLOSINGS).format(answer=problem.answer)
        messages.append(Message(role="assistant", content=f"{closing}</reason>\n{_boxed(problem.answer)}"))
        extra = {"problem_id": problem.id, "answer": problem.answer, "family": family.name}
        if fault is not None:
            extra["fault"] = fault.name
        return conversation_of(problem, messages, extra=extra)

    def _solved(self, problem: Problem, code: str, reason: str, *, first: bool) -> list[Message]:
        arguments = arguments_text(code)
        result = self._run(arguments)
        expected = self._text_of(f"{problem.answer}\n")
        if result.output != expected:
            raise Unusable(f"the program's response is {result.output!r}, not {expected!r}")
        return _turn("call-1" if first else "call-2", reason, arguments, result, train=None)

    def _fault(
        self, problem: Problem, code: str, reason: str, rng: random.Random
    ) -> tuple[Fault, list[Message]] | None:
        """The first kind of fault, in a drawn order, that applies to the code and fails as it should."""
        for fault in rng.sample(FAULTS, len(FAULTS)):
            arguments = fault.arguments(code, rng)
            if arguments is None:
                continue
            result = self._run(arguments)
            silent = result.outcome == "ok" and result.output == self._text_of("")
            if result.outcome == fault.outcome or (fault.outcome == "silent" and silent):
                return fault, _turn("call-1", reason, arguments, result, train=None if self._faults.train else False)
        return None

    def _run(self, arguments: str) -> CallResult:
        """What becomes of a call written with these arguments, parsed as a model's call is.

        An outcome that hangs on the clock is tried again: these programs are short, so the machine was busy,
        and the same command must give the same data.
        """
        call = parse_calls(format_call(PYTHON_TOOL, arguments))[0]
        seed = derive_seed(self._seed, "conversation-tool", arguments)
        result = self._runner.start(call, seed).result()
        for _ in range(_TOOL_RETRIES):
            if result.outcome not in CLOCK_DEPENDENT:
                break
            result = self._runner.start(call, seed).result()
        if result.outcome in INFRASTRUCTURE or result.output is None:
            raise EnvironmentMissing(
                f"the sandbox failed: {result.outcome}: {result.detail}", hint="rstar2 doctor says what it has"
            )
        return result

    def _text_of(self, stdout: str) -> str:
        return outcome_text(Outcome(kind="ok", stdout=stdout), self._dialogue)


def write_all(
    problems: Iterable[Problem], author: Author, *, workers: int, on_reject: Callable[[Reject], None]
) -> Iterator[Conversation]:
    """The conversations in the order of the problems, ``workers`` of them in the making at once."""
    pending: deque[tuple[Problem, Future[Conversation]]] = deque()
    with ThreadPoolExecutor(max_workers=workers, thread_name_prefix="curate") as pool:
        try:
            for problem in problems:
                pending.append((problem, pool.submit(author.write, problem)))
                if len(pending) > 2 * workers:
                    yield from _collect(pending, on_reject)
            while pending:
                yield from _collect(pending, on_reject)
        finally:
            for _, future in pending:
                future.cancel()


def _collect(
    pending: deque[tuple[Problem, Future[Conversation]]], on_reject: Callable[[Reject], None]
) -> Iterator[Conversation]:
    drain.check("no more conversations are begun")
    problem, future = pending.popleft()
    try:
        yield future.result()
    except Unusable as error:
        on_reject(_refusal(problem, str(error)))


def _refusal(problem: Problem, reason: str) -> Reject:
    """With the row that the problem was mapped from; one that was made, or read as it is, names its source."""
    file, line = problem.extra.get("file"), problem.extra.get("line")
    if not isinstance(file, str) or not isinstance(line, int):
        file, line = problem.source, 0
    return Reject(file=file, line=line, reason=f"problem {problem.id}: {reason}", raw=problem.prompt[:RAW_CHARS])


def _family_of(problem: Problem) -> tuple[Family, Params]:
    family = FAMILIES.get(str(problem.extra.get("family")))
    params = problem.extra.get("params")
    if family is None or not isinstance(params, dict) or not all(isinstance(v, int) for v in params.values()):
        raise Unusable("not of the built-in generator (no known extra.family and extra.params): nothing to write")
    try:
        answer = family.solve(params)
    except (LookupError, ArithmeticError, ValueError, StopIteration, CrossCheckError) as error:
        # The generator never makes such parameters; a file may hold anything.
        raise Unusable(f"extra.params are none of {family.name}: {type(error).__name__}: {error}") from None
    if str(answer) != problem.answer:
        raise Unusable(f"the answer of these parameters is {answer}, not {problem.answer}")
    return family, params


def _turn(call_id: str, reason: str, arguments: str, result: CallResult, *, train: bool | None) -> list[Message]:
    call = ToolCall(id=call_id, name=PYTHON_TOOL, arguments=arguments)
    return [
        Message(role="assistant", content=f"{reason}</reason>", tool_calls=[call], train=train),
        Message(role="tool", content=result.output or "", tool_call_id=call_id),
    ]


def _boxed(answer: str) -> str:
    return f"<answer>\\boxed{{{answer}}}</answer>"
