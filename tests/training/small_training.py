"""A little training that tests run whole, stopped, killed and resumed. Run as a script it dies on purpose."""

from __future__ import annotations

import os
import random
import signal
import sys
from pathlib import Path

from rstar2cli.core import drain
from rstar2cli.policy.packing import TrainSequence, count_masked
from rstar2cli.training.config import OptimConfig
from rstar2cli.training.loop import LossFn, Trainer
from rstar2cli.training.rundir import open_run

TOTAL = 4


def make_sequences(seed: int, count: int = 6) -> list[TrainSequence]:
    rng = random.Random(seed)
    result = []
    for _ in range(count):
        length = rng.randint(3, 90)
        mask = [False] + [rng.random() < 0.5 for _ in range(length - 2)] + [True]
        result.append(TrainSequence(ids=[rng.randrange(200) for _ in range(length)], mask=mask))
    return result


def nll(sequences: list[TrainSequence]) -> LossFn:
    denominator = count_masked(sequences)
    return lambda logp, batch: -logp.sum() / denominator


def train(
    base: str, out: Path, *, dtype: str = "float32", resume: bool = False, stop_after: int = 0, kill_after: int = 0
) -> str:
    config = OptimConfig(
        lr=1e-2,
        schedule="cosine",
        warmup=1,
        weight_decay=0.1,
        micro_tokens=200,
        save_every=2,
        dtype=dtype,
        device="cpu",
    )
    with open_run(out, stage="test", config={"lr": 1e-2}, resume=resume) as path:
        trainer = Trainer(base, path, config, total_steps=TOTAL)
        trainer.resume()
        while trainer.step_done < TOTAL:
            sequences = make_sequences(trainer.step_done)
            trainer.record(trainer.step(sequences, nll(sequences)).metrics())
            if trainer.step_done == kill_after:
                os.kill(os.getpid(), signal.SIGKILL)
            if trainer.step_done == stop_after:
                drain.request("test")
            try:
                trainer.safe_point({"done": trainer.step_done})
            finally:
                drain.reset()
        return trainer.finish()


if __name__ == "__main__":
    train(sys.argv[1], Path(sys.argv[2]), kill_after=int(sys.argv[3].removeprefix("kill-after-")))
