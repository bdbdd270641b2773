"""One rank of a training that ``test_parallel.py`` starts with torchrun: writes digest and figures of rank 0."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from small_training import make_sequences, nll

from rstar2cli.training.config import OptimConfig
from rstar2cli.training.loop import Trainer
from rstar2cli.training.rundir import open_run


def main(base: str, out: str, expected: int) -> None:
    config = OptimConfig(lr=1e-2, micro_tokens=120, dtype="float32", device="cpu", processes=expected)
    path = Path(out)
    if not path.exists():
        with open_run(out, stage="test", config={}):
            pass
    trainer = Trainer(base, path, config, total_steps=3)
    results = []
    for step in range(3):
        sequences = make_sequences(step)
        results.append(trainer.step(sequences, nll(sequences)))
    before = trainer.logprobs(make_sequences(9))
    digests = trainer.parallel.broadcast(trainer.digest())
    trainer.parallel.same_everywhere(trainer.digest(), "the trained model")
    if trainer.parallel.main:
        weights = {name: tensor.clone() for name, tensor in trainer.optimizer.masters.items()}
        torch.save({"weights": weights, "logprobs": before}, path / "weights.pt")
        figures = [{"loss": r.loss, "grad_norm": r.grad_norm, "counted": r.counted} for r in results]
        (path / "result.json").write_text(
            json.dumps({"digest": digests, "steps": figures, "world": trainer.parallel.world})
        )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
