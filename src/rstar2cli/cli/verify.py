"""``rstar2 verify``: is an answer right? The check that rewards, evaluation and curation use, for any rows."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rstar2cli.cli.golds import self_test as test_golds
from rstar2cli.cli.help import examples
from rstar2cli.cli.keys import list_keys
from rstar2cli.cli.options import ConfigFile, FormatOption, Keys, Limit, MaxRejects, Quiet, Seed, Sets
from rstar2cli.cli.say import say
from rstar2cli.core import config as configuration
from rstar2cli.core import process
from rstar2cli.core.errors import CheckFailed, DataError, UsageError
from rstar2cli.grading.config import VerifyConfig

if TYPE_CHECKING:
    from rstar2cli.grading.rows import Fields, Judged

_SHOWN = 5
_OF_SELF_TEST = {"pairs": "--pairs", "seed": "--seed", "format": "--format"}
_OF_JUDGING = {
    "pred_field": "--pred-field", "kind": "--kind", "answer_kind": "--answer-kind",
    "expected_field": "--expected-field", "max_rejects": "--max-rejects",
}  # fmt: skip
Rows = Annotated[
    list[str] | None,
    typer.Argument(metavar="FILE|-", help="JSONL, plain, gzip or zstd; - for stdin.", show_default=False),
]
GoldField = Annotated[str, typer.Option("--gold-field", metavar="NAME", help="Column of the gold answer.")]
PredField = Annotated[str, typer.Option("--pred-field", metavar="NAME", help="Column of what is judged.")]
Kind = Annotated[
    Literal["answer", "response"] | None,
    typer.Option(
        "--kind",
        help="Whether it is an answer or a text with one [default: the row's `kind`, else answer]",
        show_default=False,
    ),
]
GoldKind = Annotated[
    Literal["integer", "rational", "expression", "choice", "text"] | None,
    typer.Option(
        "--answer-kind", help="What every gold must be [default: the row's `answer_kind`, else any]", show_default=False
    ),
]
Expected = Annotated[
    str | None,
    typer.Option(
        "--expected-field",
        metavar="NAME",
        help="Column of labels (true = correct) to compare with.",
        show_default=False,
    ),
]
SelfTest = Annotated[bool, typer.Option("--self-test", help="Test the golds of problem files instead.")]
Pairs = Annotated[int, typer.Option("--pairs", min=0, help="Pairs of golds to try for each other (--self-test).")]


@examples(
    "rstar2 verify answers.jsonl > judged.jsonl",
    "rstar2 verify - --gold-field target --pred-field output --kind response < rows.jsonl",
    "rstar2 verify labelled.jsonl --expected-field expected --set policy.units=required > /dev/null",
    "rstar2 verify --self-test problems.jsonl",
)
def main(
    context: typer.Context,
    inputs: Rows = None,
    gold_field: GoldField = "gold",
    pred_field: PredField = "pred",
    kind: Kind = None,
    answer_kind: GoldKind = None,
    expected_field: Expected = None,
    self_test: SelfTest = False,
    pairs: Pairs = 20_000,
    seed: Seed = 0,
    limit: Limit = None,
    config_file: ConfigFile = None,
    sets: Sets = None,
    keys: Keys = False,
    max_rejects: MaxRejects = 0.01,
    quiet: Quiet = False,
    format: FormatOption = "auto",
) -> None:
    """Judge answers against golds: each row again on stdout, in order, with its verdict and reason.

    A verdict is correct, wrong (with the reason: different, hedged, no_answer, unparseable, over_cap) or
    undecided, which is never the answer's fault. Of a response, the answer is extracted first.
    A row that can't be judged comes back as undecided, bad_row, with what is wrong (exit code 3 past
    --max-rejects). With --expected-field, disagreements are listed (exit code 1).

    With --self-test, FILEs hold problems (ours, NAME:FILE of a benchmark, or any rows with an answer column, which
    --gold-field may name): golds that
    are not accepted as their own answer are listed (exit code 1), and of --pairs pairs of different golds those
    accepted for each other, which are worth a look.
    """
    if keys:
        print(list_keys(VerifyConfig))
        return
    _refuse_idle(context, self_test)
    if not inputs or (len(inputs) > 1 and not self_test):
        raise UsageError(
            "verify takes one FILE, or - for stdin", hint="several files: cat a.jsonl b.jsonl | rstar2 verify -"
        )
    layers = [configuration.toml_layer(config_file)] if config_file else []
    layers += [configuration.environment_layer(process.config_environment()), configuration.set_layer(sets or [])]
    config = configuration.resolve(VerifyConfig, layers)
    if self_test:
        column = gold_field if _given(context, "gold_field") else None
        test_golds(inputs, config, column, pairs=pairs, seed=seed, limit=limit, quiet=quiet, format=format)
        return
    from rstar2cli.grading.rows import Fields

    fields = Fields(gold=gold_field, pred=pred_field, kind=kind, answer_kind=answer_kind, expected=expected_field)
    _judge_file(inputs[0], fields, config, limit=limit, max_rejects=max_rejects, quiet=quiet)


def _given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _refuse_idle(context: typer.Context, self_test: bool) -> None:
    """Raise ``UsageError`` for options that would do nothing: those of the other of the two tasks."""
    idle = _OF_JUDGING if self_test else _OF_SELF_TEST
    given = [option for name, option in idle.items() if _given(context, name)]
    if given:
        raise UsageError(
            f"{', '.join(given)}: only {'without' if self_test else 'with'} --self-test",
            hint="verify judges rows; verify --self-test tests golds (rstar2 verify --help)",
        )


def _judge_file(
    name: str, fields: Fields, config: VerifyConfig, *, limit: int | None, max_rejects: float, quiet: bool
) -> None:
    from rstar2cli.answers.extract import Extraction
    from rstar2cli.grading.grade import Grader
    from rstar2cli.grading.rows import judge
    from rstar2cli.grading.workers import Workers

    tally = _Tally(name)
    with Workers() as workers:
        workers.start()  # loads while the first rows are read
        strict = Grader(policy=config.policy, workers=workers)
        lenient = Grader(policy=config.policy, extraction=Extraction(fallbacks=config.fallbacks), workers=workers)
        for judged in judge(_lines(name, limit), fields, strict, lenient):
            sys.stdout.buffer.write(judged.row + b"\n")
            sys.stdout.buffer.flush()
            tally.add(judged)
    tally.tell(quiet=quiet, max_rejects=max_rejects)


def _lines(name: str, limit: int | None) -> Iterator[tuple[int, bytes | str]]:
    """Numbered lines of the file; of one that is too long, why it can't be judged."""
    from itertools import islice
    from pathlib import Path

    from rstar2cli.shards.lines import MAX_LINE_BYTES, open_file, read_lines, stdin_stream
    from rstar2cli.shards.resolve import resolve

    if name != "-" and Path(name).is_dir():
        raise UsageError(
            f"{name}: verify reads one file, not a directory", hint=f"cat {name}/*.jsonl | rstar2 verify -"
        )
    for source in resolve([name]):
        if source.parquet:
            raise UsageError(
                f"{source.path}: verify reads JSONL", hint=f"rstar2 head {name} -n 1000000 -f jsonl | rstar2 verify -"
            )
        stream = stdin_stream() if source.stdin else open_file(source.path)
        for line in islice(read_lines(stream, name), limit):
            data = line.data.removeprefix(b"\xef\xbb\xbf") if line.number == 1 else line.data
            yield line.number, f"a line of more than {MAX_LINE_BYTES >> 20} MiB" if line.too_long else data


class _Tally:
    """Counts, the first bad rows, and what labels disagree with."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.verdicts: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.faults: list[str] = []
        self.labelled = 0
        self.false_positives: list[int] = []
        self.false_negatives: list[int] = []

    def add(self, judged: Judged) -> None:
        self.verdicts[judged.verdict] += 1
        if judged.reason:
            self.reasons[judged.reason] += 1
        if judged.fault is not None:
            self.faults.append(f"{self.name}:{judged.line}: {judged.fault}")
        if judged.expected is not None:
            self.labelled += 1
            correct = judged.verdict == "correct"
            if correct and not judged.expected:
                self.false_positives.append(judged.line)
            elif judged.expected and not correct:
                self.false_negatives.append(judged.line)

    def tell(self, *, quiet: bool, max_rejects: float) -> None:
        rows = sum(self.verdicts.values())
        if not quiet:
            why = ", ".join(f"{reason} {count}" for reason, count in self.reasons.most_common())
            counts = ", ".join(f"{self.verdicts[verdict]} {verdict}" for verdict in ("correct", "wrong", "undecided"))
            say(f"{rows} row{'s' if rows != 1 else ''}: {counts}" + (f" ({why})" if why else ""))
        if self.labelled and not quiet:
            agree = self.labelled - len(self.false_positives) - len(self.false_negatives)
            say(
                f"labels: {agree} of {self.labelled} agree ({agree / self.labelled:.4f}); "
                f"false positives {_listed(self.false_positives)}; false negatives {_listed(self.false_negatives)}"
            )
        if self.faults:
            message = f"{len(self.faults)} of {rows} rows can't be judged; the first:\n" + "\n".join(
                f"  {fault}" for fault in self.faults[:_SHOWN]
            )
            if len(self.faults) > max_rejects * rows:
                raise DataError(
                    message, hint="they are in the output with the reason bad_row; allow more with --max-rejects"
                )
            if not quiet:
                say(f"warning: {message}")
        if self.false_positives or self.false_negatives:
            raise CheckFailed(
                f"{len(self.false_positives) + len(self.false_negatives)} verdicts disagree with {self.name}'s labels"
            )


def _listed(lines: list[int]) -> str:
    return (
        "none"
        if not lines
        else f"{len(lines)} (lines {', '.join(map(str, lines[:20]))}{', …' if len(lines) > 20 else ''})"
    )
