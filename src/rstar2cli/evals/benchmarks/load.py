"""Benchmarks by name: `NAME:` from the hub, `NAME:FILE` from a JSONL or Parquet file of the same columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from rstar2cli.evals.benchmarks import aime24, aime25, gsm8k, hmmt25, math500
from rstar2cli.evals.benchmarks.base import Benchmark
from rstar2cli.records import Problem
from rstar2cli.shards import parquet
from rstar2cli.shards.hub import hub_rows
from rstar2cli.shards.lines import open_file, read_lines
from rstar2cli.shards.rejects import Reject, reject_line
from rstar2cli.shards.resolve import resolve

BENCHMARKS: dict[str, Benchmark] = {
    module.BENCHMARK.name: module.BENCHMARK for module in (aime24, aime25, gsm8k, hmmt25, math500)
}
OnReject = Callable[[Reject], None]


def is_benchmark(name: str) -> bool:
    """Whether an input names a benchmark (a file that is called so is a file)."""
    return name.partition(":")[0] in BENCHMARKS and ":" in name and not Path(name).exists()


def load_benchmark(name: str, on_reject: OnReject) -> Iterator[Problem]:
    """The problems of `NAME:` or `NAME:FILE`; rows that don't fit go to ``on_reject``.

    Raises ``InputMissing`` if the file or set can't be had, ``EnvironmentMissing`` without the
    package that reads hub sets.
    """
    key, _, path = name.partition(":")
    benchmark = BENCHMARKS[key]
    place = path or f"{benchmark.hub}:{benchmark.split}"
    rows = _file_rows(path, on_reject) if path else _hub_rows(benchmark)
    for number, (line, row) in zip(count(), rows, strict=False):
        try:
            yield benchmark.to_problem(row, number)
        except ValueError as error:
            raw = msgspec.json.encode(row, enc_hook=str)
            on_reject(reject_line(place, line, f"not a problem of {key}: {error}", raw))


def _file_rows(path: str, on_reject: OnReject) -> Iterator[tuple[int, dict[str, Any]]]:
    for source in resolve([path]):
        if source.parquet:
            rows = (row for batch in parquet.batches(source.path) for row in batch.to_pylist())
            yield from enumerate(rows, 1)
            continue
        for line in read_lines(open_file(source.path), path):
            try:
                yield line.number, msgspec.json.decode(line.data, type=dict[str, Any])
            except (msgspec.DecodeError, RecursionError) as error:
                on_reject(reject_line(path, line.number, f"not a JSON object: {error}", line.data))


def _hub_rows(benchmark: Benchmark) -> Iterator[tuple[int, dict[str, Any]]]:
    path, _, config = benchmark.hub.partition("@")
    hint = f"give a local copy: {benchmark.name}:FILE"
    return enumerate(hub_rows(path, config or None, benchmark.split, name=f"{benchmark.name} ({path})", hint=hint), 1)
