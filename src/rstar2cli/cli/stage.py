"""What every stage shares: its options, configuration, inputs, outputs, rejects and result.

A stage's module writes::

    @stage(config=SftConfig, examples=["rstar2 sft data -m base -o runs/sft"])
    def main(run: Stage[SftConfig], model: Model) -> None:
        '''Help text.'''

and gets the shared options added to its own, the configuration resolved from all
layers, and a :class:`Stage` with everything that is the same in all of them.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import sys
import typing
from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rstar2cli.cli import options, signals
from rstar2cli.cli.guard import guarded
from rstar2cli.cli.help import examples as help_examples
from rstar2cli.cli.keys import list_keys
from rstar2cli.cli.progress import reporter
from rstar2cli.cli.say import say
from rstar2cli.core import config as configuration
from rstar2cli.core import drain, process
from rstar2cli.core.allocator import keep_memory
from rstar2cli.core.errors import DataError, InputMissing, Stopped, UsageError
from rstar2cli.core.progress import ProgressFn

if TYPE_CHECKING:
    from rstar2cli.records import Record
    from rstar2cli.shards.lineage import Lineage
    from rstar2cli.shards.rejects import Reject
    from rstar2cli.shards.writer import Writer

C = TypeVar("C")
R = TypeVar("R", bound="Record")

_SHOWN_REJECTS = 3


@dataclass(kw_only=True)
class Stage(Generic[C]):
    """One run of a stage."""

    name: str
    """The command."""
    inputs: list[str]
    """IN arguments as given."""
    out: str
    """OUT as given."""
    config: C
    """The resolved configuration."""
    model: str | None = None
    """The model as given; null for stages without one."""
    seed: int
    limit: int | None
    where: str | None
    dry_run: bool
    resume: bool
    overwrite: bool
    json: bool
    quiet: bool
    verbose: bool
    rejects: str | None
    max_rejects: float
    strict: bool
    rows_per_part: int | None = None
    read_rows: int = 0
    """Input rows seen, the rejected ones included."""
    rejected: list[Reject] = field(default_factory=list)
    """Rows that could not be used."""
    _places: dict[str, tuple[str, int]] = field(default_factory=dict)
    """File and line of the records read, by their ids."""
    _placed: dict[int, tuple[str, int]] = field(default_factory=dict)
    """The same by the identity of the record: ids may occur twice."""
    _judged: int = 0
    _rejects_file: str | None = None
    _writer: Writer[Any] | None = None

    @functools.cached_property
    def progress(self) -> ProgressFn:
        """The callback that rooms report to."""
        return reporter(quiet=self.quiet, verbose=self.verbose)

    def resolved(self) -> dict[str, Any]:
        """Everything needed to run this again, for ``config.json`` and the lineage."""
        return {
            "stage": self.name,
            "inputs": self.inputs,
            **({"model": self.model} if self.model is not None else {}),
            "seed": self.seed,
            "limit": self.limit,
            "where": self.where,
            "config": configuration.to_dict(self.config),
        }

    def read(self, cls: type[R], *, keep_places: bool = False) -> Iterator[R]:
        """The input records of one kind, filtered and limited; bad rows are kept as rejects.

        ``keep_places`` remembers where each record came from, for :meth:`refusal`. Raises ``Stopped`` between
        rows if asked to.
        """
        from rstar2cli.shards.reader import read_records

        def tell(name: str, unknown: str) -> None:
            self.warn(f"{name}: field {unknown!r} is not one of a {cls.kind()}: kept in `extra` (--strict refuses)")

        def refuse(reject: Reject) -> None:
            self.reject(reject)
            self._heed_stop()

        records = read_records(
            self.inputs,
            cls,
            where=self.where,
            limit=self.limit,
            strict=self.strict,
            on_reject=refuse,
            on_unknown=tell,
            on_place=self._note_place if keep_places else None,
        )
        for record in records:
            self.read_rows += 1
            self._heed_stop()
            yield record

    def read_unique(self, cls: type[R]) -> list[R]:
        """All of :meth:`read`, with places. Raises ``DataError`` for an id that occurs twice, with both places."""
        records: dict[str, R] = {}
        for record in self.read(cls, keep_places=True):
            name = getattr(record, "id", "")
            if records.setdefault(name, record) is not record:
                first, second = (":".join(map(str, self._placed[id(one)])) for one in (records[name], record))
                other = "given twice" if first == second else f"that of {first} too"
                raise DataError(
                    f"{second}: the {cls.record_name} id {name!r} is {other}",
                    hint="ids must be unique: leave rows out with --where, or give each input once",
                )
        return list(records.values())

    def _heed_stop(self) -> None:
        # The stages read everything before they begin: what is there to go on from is of an earlier run.
        drain.check(f"{self.read_rows} input rows read, nothing begun", resumable=self.resume)

    def _note_place(self, record: Record, file: str, line: int) -> None:
        self._places[getattr(record, "id", "")] = self._placed[id(record)] = file, line

    def refusal(self, record_id: str, reason: str) -> Reject:
        """A reject for a record that :meth:`read` gave (``keep_places``) and that can't be used, with its place."""
        from rstar2cli.shards.rejects import Reject

        file, line = self._places[record_id]
        return Reject(file=file, line=line, reason=reason)

    def reject(self, reject: Reject, *, counted: bool = False) -> None:
        """Keep a row that can't be used, with its place and reason; ``counted``: it was read as a good one before."""
        if not counted:
            self.read_rows += 1
        if self.verbose:
            self.warn(str(reject))
        self.rejected.append(reject)
        if self._writer is not None:
            self._writer.reject(reject)

    def require(self, records: Sized, what: str) -> None:
        """Stop before any work if nothing was read that passes: ``DataError`` past ``--max-rejects``,
        else ``InputMissing``. ``what`` is the plural of what is missing."""
        if records:
            return
        self.keep_rejects()
        self.judge_rejects()
        raise InputMissing(f"{' '.join(self.inputs)}: no {what}", hint="check --where and --limit")

    def lineage(self, model: str | None = None) -> Lineage:
        """Where the output comes from, for its footer and manifest."""
        from rstar2cli.shards.lineage import make_lineage

        return make_lineage(
            command=["rstar2", *sys.argv[1:]],
            config=self.resolved(),
            inputs=self.inputs,
            model=model,
            seed=self.seed,
        )

    @contextlib.contextmanager
    def writer(
        self, cls: type[Record], *, model: str | None = None, rows_per_part: int | None = None
    ) -> Iterator[Writer[Any]]:
        """The output as a shard writer; rejects seen so far and later go beside it.

        ``rows_per_part``: the stage's own default, which the option of that name replaces.
        """
        from rstar2cli.shards.writer import ROWS_PER_PART, open_writer

        writer = open_writer(
            self.out,
            cls,
            lineage=self.lineage(model),
            config=self.resolved(),
            resume=self.resume,
            overwrite=self.overwrite,
            rejects=self.rejects,
            rows_per_part=self.rows_per_part or rows_per_part or ROWS_PER_PART,
        )
        try:
            with writer:
                self._writer = writer
                self._rejects_file = None if writer.rejects_path is None else str(writer.rejects_path)
                for reject in self.rejected:
                    writer.reject(reject)
                yield writer
                if writer.replaces:
                    # Here, while the old output can be kept: only a run that succeeds takes its place.
                    self._rejects_file = self.rejects
                    self.keep_rejects()
                    self.judge_rejects()
        except Stopped as stop:
            stop.resumable = stop.resumable and writer.kept
            raise
        finally:
            self._writer = None

    def warn(self, message: str) -> None:
        """A line on stderr that is not an error."""
        if not self.quiet and process.ranks().main:
            say(f"warning: {message}")

    def plan(self, **rows: Any) -> None:
        """Print what ``--dry-run`` found."""
        shown = {"stage": self.name, **rows, "config": configuration.to_dict(self.config)}
        if self.json:
            print(json.dumps(shown))
            return
        for key, value in shown.items():
            if key != "config":
                print(f"{key:<12} {value}")
        print(list_keys(type(self.config), self.config))

    def finish(self, **result: Any) -> None:
        """Print the path (or the JSON result) and judge the rejects: exit 3 past ``--max-rejects``.

        Of several processes the first one speaks, here and in :meth:`warn`.
        """
        if not process.ranks().main:
            return
        if self.out != "-":
            if self.json:
                print(json.dumps({"out": self.out, "rejected": len(self.rejected), **result}))
            else:
                print(self.out)
        self.judge_rejects()

    def keep_rejects(self) -> None:
        """Write the rejected rows to the file of ``--rejects``, if it is given: for stages that read everything
        before they have an output. Raises what :func:`write_bytes` does."""
        if self.rejects is None or not self.rejected or self.dry_run or not process.ranks().main:
            return
        from rstar2cli.shards.atomic import write_bytes
        from rstar2cli.shards.rejects import encode_reject

        write_bytes(Path(self.rejects), b"".join(map(encode_reject, self.rejected)))
        self._rejects_file = self.rejects

    def judge_rejects(self) -> None:
        """Warn of rejected rows, or raise ``DataError`` past ``--max-rejects``; each number of them once.

        A stage that reads everything first calls this before its work, so that bad data stops it early.
        """
        if not self.rejected or len(self.rejected) == self._judged:
            return
        self._judged = len(self.rejected)
        share = len(self.rejected) / max(1, self.read_rows)
        first = "\n".join(f"  {r.file}:{r.line}: {r.reason}" for r in self.rejected[:_SHOWN_REJECTS])
        message = f"{len(self.rejected)} of {self.read_rows} input rows rejected; the first:\n{first}"
        if share > self.max_rejects:
            listed = self._rejects_file or "--rejects FILE lists them all"
            more = f"allow more with --max-rejects {min(1.0, share + 0.005):.2f}, or " if share < 1.0 else ""
            raise DataError(message, hint=f"{more}mend them ({listed})")
        self.warn(message)


_SHARED: dict[str, Any] = {
    "config_file": (options.ConfigFile, None),
    "sets": (options.Sets, None),
    "seed": (options.Seed, 0),
    "limit": (options.Limit, None),
    "where": (options.Where, None),
    "dry_run": (options.DryRun, False),
    "keys": (options.Keys, False),
    "resume": (options.Resume, False),
    "overwrite": (options.Overwrite, False),
    "json_result": (options.JsonResult, False),
    "quiet": (options.Quiet, False),
    "verbose": (options.Verbose, False),
    "rejects": (options.Rejects, None),
    "max_rejects": (options.MaxRejects, 0.01),
    "strict": (options.Strict, False),
}
_OF_SHARDS: dict[str, Any] = {"rows_per_part": (options.RowsPerPart, None)}
"""Options of the stages whose OUT is one directory of parts (or a file, or a stream, which have none)."""


def stage(
    *, config: type[Any], examples: list[str], run_directory: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Turn ``main(run, own options…)`` into a command with the shared options and ``--help`` examples.

    ``run_directory`` is for stages whose OUT can only be a directory.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        name = function.__module__.rsplit(".", 1)[-1].replace("_", "-")

        @functools.wraps(function)
        def command(**given: Any) -> None:
            shared = {key: given.pop(key) for key in _shared(run_directory)}
            inputs, out = given.pop("inputs") or [], given.pop("out")
            if shared.pop("keys"):
                print(list_keys(config))
                return
            _require(name, inputs, out, {p.name: given[p.name] for p in own if p.default is inspect.Parameter.empty})
            run = _make(name, config, inputs, out, shared, run_directory)
            run.model = given.get("model")
            keep_memory()
            with signals.draining(), guarded(run, [*inputs, *(given.get("rollouts") or [])]):
                function(run, **given)

        command.__signature__ = _signature(own, run_directory)  # type: ignore[attr-defined]
        command.__annotations__ = {p.name: p.annotation for p in command.__signature__.parameters.values()}  # type: ignore[attr-defined]
        command.config = config  # type: ignore[attr-defined]
        del command.__wrapped__  # typer must read the new signature
        return help_examples(*examples)(command)

    return decorate


def _signature(own: list[inspect.Parameter], run_directory: bool) -> inspect.Signature:
    """IN, OUT and the stage's own required options are optional to the parser, so that ``--keys`` works alone."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    out = options.RunOut if run_directory else options.Out
    parameters = [
        inspect.Parameter("inputs", keyword, annotation=_optional(options.Inputs), default=None),
        inspect.Parameter("out", keyword, annotation=_optional(out), default=None),
    ]
    for parameter in own:
        required = parameter.default is inspect.Parameter.empty
        annotation = _optional(parameter.annotation) if required else parameter.annotation
        default = None if required else parameter.default
        parameters.append(parameter.replace(kind=keyword, annotation=annotation, default=default))
    for key, (annotation, default) in _shared(run_directory).items():
        parameters.append(inspect.Parameter(key, keyword, annotation=annotation, default=default))
    return inspect.Signature(parameters)


def _shared(run_directory: bool) -> dict[str, Any]:
    return _SHARED if run_directory else _SHARED | _OF_SHARDS


def _optional(annotation: Any) -> Any:
    kind, *metadata = typing.get_args(annotation)
    return typing.Annotated[(kind | None, *metadata)]


def _require(name: str, inputs: list[str], out: str | None, required: dict[str, Any]) -> None:
    missing = [key.replace("_", "-") for key, value in required.items() if value is None]
    wanted = (["IN"] if not inputs else []) + (["-o OUT"] if out is None else []) + [f"--{key}" for key in missing]
    if wanted:
        raise UsageError(f"{name}: missing {', '.join(wanted)}", hint=f"see rstar2 {name} --help")


def _make(
    name: str, config: type[Any], inputs: list[str], out: str, shared: dict[str, Any], run_directory: bool
) -> Stage[Any]:
    from rstar2cli.shards.writer import is_file_name

    layers = []
    if path := shared.pop("config_file"):
        layers.append(configuration.toml_layer(path))
    layers.append(configuration.environment_layer(process.config_environment()))
    layers.append(configuration.set_layer(shared.pop("sets") or []))
    if shared["quiet"] and shared["verbose"]:
        raise UsageError("--quiet and --verbose exclude each other")
    if shared["resume"] and shared["overwrite"]:
        raise UsageError("--resume and --overwrite exclude each other")
    json_result = shared.pop("json_result")
    if run_directory and out == "-":
        raise UsageError(f"{name} writes a directory, not a stream: -o -", hint="name one: -o runs/NAME")
    if run_directory and is_file_name(out):
        raise UsageError(f"{name} writes a directory, and {out} names a file", hint="name one: -o runs/NAME")
    if json_result and out == "-":
        raise UsageError("--json and -o - both claim stdout", hint="write to a directory, or leave --json out")
    if out == "-" and shared["resume"]:
        raise UsageError("--resume needs an OUT that lasts, not -")
    resolved = configuration.resolve(config, layers)
    return Stage(name=name, inputs=inputs, out=out, config=resolved, json=json_result, **shared)
