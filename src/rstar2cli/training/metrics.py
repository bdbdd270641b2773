"""A run's history: one metric record a line, on disk after every step."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from rstar2cli.core.errors import DataError
from rstar2cli.records import Metric
from rstar2cli.records.codec import encode_line
from rstar2cli.shards.atomic import output_error, write_bytes
from rstar2cli.training.rundir import METRICS


class MetricsLog:
    """Appends to ``metrics.jsonl`` of a run."""

    def __init__(self, directory: Path, run: str) -> None:
        self._path = directory / METRICS
        self._run = run

    def append(self, step: int, values: Mapping[str, float]) -> None:
        """Write a step's figures, in the order of their names. Raises our error if the disk refuses."""
        rows = [Metric(run=self._run, step=step, name=name, value=float(values[name])) for name in sorted(values)]
        try:
            with self._path.open("ab") as file:
                file.write(b"".join(map(encode_line, rows)))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise output_error(self._path, error) from error

    def truncate(self, step: int) -> None:
        """Keep the rows up to ``step`` only: what came after the checkpoint will be done again."""
        if not self._path.exists():
            write_bytes(self._path, b"")
            return
        kept = []
        lines = self._path.read_bytes().split(b"\n")
        torn = len(lines) - 1  # what follows the last newline was being written when the process died
        for number, line in enumerate(lines[:torn], 1):
            try:
                row = msgspec.json.decode(line, type=Metric)
            except msgspec.DecodeError as error:
                raise DataError(f"{self._path}:{number}: not a metric record: {error}") from error
            if row.step <= step:
                kept.append(line + b"\n")
        write_bytes(self._path, b"".join(kept))
