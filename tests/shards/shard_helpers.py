"""Short ways to write and read in tests."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from records_samples import problem

from rstar2cli.records import Problem, Record
from rstar2cli.shards.lineage import Lineage
from rstar2cli.shards.reader import read_records
from rstar2cli.shards.writer import Writer, open_writer

LINEAGE = Lineage(command=["rstar2", "test"], config={"a": 1}, inputs={"in": "0"}, model="m", code="1", seed=3)


def writer(out: Path | str, cls: type[Record] = Problem, **options: Any) -> Writer[Any]:
    return open_writer(str(out), cls, **{"lineage": LINEAGE, "config": {"a": {"b": 1}}, **options})


def write(out: Path | str, records: Iterable[Record], cls: type[Record] = Problem, **options: Any) -> Path:
    with writer(out, cls, **options) as open_one:
        for record in records:
            open_one.write(record)
    return Path(out)


def problems(count: int, start: int = 0) -> list[Problem]:
    return [problem(number) for number in range(start, start + count)]


def ids(*inputs: Path | str, **options: Any) -> list[str]:
    return [record.id for record in read_records([str(name) for name in inputs], Problem, **options)]


def names(directory: Path) -> set[str]:
    return set(os.listdir(directory))
