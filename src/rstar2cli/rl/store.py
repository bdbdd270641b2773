"""Trajectories and selections of a run, step by step, as shards in its directory.

Training reads what was written, never what was in memory: so a step that is trained on after a
crash, or from rollouts made elsewhere, is the same step.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rstar2cli.records import Selection, Trajectory
from rstar2cli.shards.lineage import Lineage
from rstar2cli.shards.manifest import read_manifest
from rstar2cli.shards.reader import read_records
from rstar2cli.shards.writer import Writer, open_writer
from rstar2cli.training.rundir import ROLLOUTS, SELECTIONS


class StepStore:
    """``OUT/rollouts/step-00001`` (and ``…-r1`` for its first refill) and ``OUT/selections/step-00001``."""

    def __init__(self, out: Path, lineage: Lineage, seed: int, *, rows_per_part: int) -> None:
        self._out = out
        self._lineage = lineage
        self._seed = seed
        self._rows_per_part = rows_per_part

    def rollouts(self, step: int, refill: int = 0) -> Path:
        """Directory of a step's trajectories, or of its refill number ``refill``."""
        return self._out / ROLLOUTS / (f"step-{step:05d}" + (f"-r{refill}" if refill else ""))

    def complete(self, step: int, refill: int = 0) -> bool:
        """Whether all trajectories of that directory are there."""
        return read_manifest(self.rollouts(step, refill)) is not None

    def rollout_writer(self, step: int, refill: int = 0) -> Writer[Trajectory]:
        """Writes that directory, or goes on writing it."""
        return open_writer(
            str(self.rollouts(step, refill)),
            Trajectory,
            lineage=self._lineage,
            config={"stage": "train-rl", "step": step, "refill": refill, "seed": self._seed},
            resume=True,
            rows_per_part=self._rows_per_part,
        )

    def read(self, step: int, refill: int = 0) -> list[Trajectory]:
        """The trajectories, in the order in which they were written."""
        return list(read_records([str(self.rollouts(step, refill))], Trajectory))

    def write_selections(self, step: int, records: Sequence[Selection]) -> None:
        """Write what was decided about a step's trajectories, over an earlier decision if there is one."""
        path = self._out / SELECTIONS / f"step-{step:05d}"
        config = {"stage": "train-rl", "step": step, "seed": self._seed}
        with open_writer(str(path), Selection, lineage=self._lineage, config=config, overwrite=True) as writer:
            for record in records:
                writer.write(record)
