"""The curate stage: inputs to problem records, or to SFT conversations made from them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from rstar2cli.core import drain, process
from rstar2cli.core.progress import Progress, ProgressFn, silent
from rstar2cli.curation.config import CurateConfig
from rstar2cli.curation.problems import read_problems
from rstar2cli.records import Conversation, Problem
from rstar2cli.shards.rejects import Reject


def record_class(config: CurateConfig) -> type[Problem] | type[Conversation]:
    """What the stage writes."""
    return Problem if config.emit == "problems" else Conversation


def curate(
    inputs: Sequence[str],
    config: CurateConfig,
    *,
    seed: int,
    on_reject: Callable[[Reject], None],
    limit: int | None = None,
    where: str | None = None,
    strict: bool = False,
    done: Collection[str] = (),
    progress: ProgressFn = silent,
) -> Iterator[Problem | Conversation]:
    """The records in order, at most ``limit``; those whose ids are ``done`` are counted but not made again.

    Inputs are files, globs, shard directories, ``-``, ``synth:``, ``hf:owner/name[@config][:split]``.
    The same inputs, configuration and seed give the same records. Raises errors of
    :mod:`rstar2cli.core.errors` for inputs that can't be read and for a sandbox that fails.
    """
    problems = read_problems(inputs, config, seed=seed, limit=limit, on_reject=on_reject, where=where, strict=strict)
    records = _records((problem for problem in problems if problem.id not in done), config, seed, on_reject)
    for number, record in enumerate(records, start=1):
        yield record
        progress(Progress(task="curate", done=number, total=limit, unit=config.emit))
        drain.check(f"{number} {config.emit} made")


def _records(
    problems: Iterator[Problem], config: CurateConfig, seed: int, on_reject: Callable[[Reject], None]
) -> Iterator[Problem | Conversation]:
    if config.emit == "problems":
        yield from problems
        return
    # Here: only conversations need the sandbox and the dialogue.
    from rstar2cli.curation.conversations import Author, write_all
    from rstar2cli.sandbox.build import build_sandbox

    sandbox = build_sandbox(config.sandbox)
    try:
        author = Author(sandbox, config.dialogue, config.faults, seed)
        workers = config.sandbox.workers or process.cores()
        yield from write_all(problems, author, workers=workers, on_reject=on_reject)
    finally:
        sandbox.close()
