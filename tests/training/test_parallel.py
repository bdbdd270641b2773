"""Two ranks against one; set-ups that would train wrongly are refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from rstar2cli.policy.tiny import init_tiny

SCRIPT = str(Path(__file__).with_name("rank_training.py"))


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("base") / "tiny"
    init_tiny(path, seed=5, dtype=torch.float32)
    return str(path)


def launch(world: int, base: str, out: Path, expected: int, **env: str) -> subprocess.CompletedProcess[str]:
    """``world`` processes through torchrun (none for 1)."""
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(world)] if world > 1 else []
    out.mkdir(parents=True)
    (out / "run.json").write_text("{}")
    command = [sys.executable, *torchrun, SCRIPT, base, str(out), str(expected)]
    settings = {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path), **env}
    return subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, timeout=240)


def test_two_ranks_train_as_one(base, tmp_path):
    for world in (1, 2):
        done = launch(world, base, tmp_path / str(world), world)
        assert done.returncode == 0, done.stderr[-3000:]
    one, two = (json.loads((tmp_path / w / "result.json").read_text()) for w in ("1", "2"))
    assert (one["world"], two["world"]) == (1, 2)
    for a, b in zip(one["steps"], two["steps"], strict=True):
        assert b["loss"] == pytest.approx(a["loss"], rel=1e-5)
        assert b["grad_norm"] == pytest.approx(a["grad_norm"], rel=1e-4)
        assert b["counted"] == a["counted"]
    alone, together = (torch.load(tmp_path / w / "weights.pt") for w in ("1", "2"))
    for name, weight in alone["weights"].items():
        assert torch.allclose(together["weights"][name], weight, atol=2e-3), name
    assert torch.allclose(together["logprobs"], alone["logprobs"], atol=2e-2)


def test_another_number_of_processes_than_promised_is_refused(base, tmp_path):
    done = launch(1, base, tmp_path / "run", 2)
    assert done.returncode != 0
    assert "2 processes expected, 1 running" in done.stderr


def test_fsdp_is_refused_rather_than_ignored(base, tmp_path):
    """On CPUs accelerate drops it without a word, or runs processes that never exchange gradients."""
    done = launch(1, base, tmp_path / "run", 0, ACCELERATE_USE_FSDP="true", FSDP_VERSION="2")
    assert done.returncode != 0
    assert "configured to shard" in done.stderr, done.stderr[-3000:]
    assert not (tmp_path / "run" / "result.json").exists()
