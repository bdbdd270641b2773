"""A stage that is killed and resumed ends with the same data as one that was not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from rstar2cli.cli.app import run
from rstar2cli.policy.digest import checkpoint_digest
from rstar2cli.policy.tiny import init_tiny
from rstar2cli.shards.digest import data_digest

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2] / "src")}


SMALL_PARTS = """
import sys
from rstar2cli.cli import app, curate
curate._PROBLEMS_PER_PART = 200
sys.exit(app.run(sys.argv[1:]))
"""


def kill_when(command: list[str], sign: Path, pattern: str, start: tuple[str, ...] = ("-m", "rstar2cli")) -> None:
    """Run a command and kill it as soon as a file that matches is there."""
    process = subprocess.Popen(
        [sys.executable, *start, *command],
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 100
    while not list(sign.glob(pattern)) and time.monotonic() < deadline:
        assert process.poll() is None, "it was to be killed on the way"
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    assert process.wait(10) == -signal.SIGKILL


def test_curate(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("rstar2cli.cli.curate._PROBLEMS_PER_PART", 200)
    command = ["curate", "synth:", "--limit", "2000", "--seed", "3"]
    kill_when([*command, "-o", str(tmp_path / "cut")], tmp_path / "cut", "part-*.parquet", ("-c", SMALL_PARTS))
    assert not (tmp_path / "cut" / "manifest.json").exists()
    assert run(["head", str(tmp_path / "cut")]) == 4
    assert run([*command, "-o", str(tmp_path / "cut")]) == 5
    assert capsys.readouterr().err.count("--resume") == 2
    assert run([*command, "-o", str(tmp_path / "cut"), "--resume", "-q"]) == 0
    assert run([*command, "-o", str(tmp_path / "whole"), "-q"]) == 0
    assert data_digest([str(tmp_path / "cut")]) == data_digest([str(tmp_path / "whole")])


def steps(path: Path) -> list[int]:
    return [json.loads(line)["step"] for line in (path / "metrics.jsonl").read_text().splitlines()]


def test_sft(tmp_path):
    init_tiny(tmp_path / "base", seed=5)
    rows = [
        {"kind": "conversation/1", "id": f"c{n}", "source": "t",
         "messages": [{"role": "user", "content": f"{n}+1"}, {"role": "assistant", "content": f"{n + 1}</reason>"}]}
        for n in range(120)
    ]  # fmt: skip
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ["sft", str(data), "-m", str(tmp_path / "base"), "--set", "dialogue.system=short", "--set", "batch=4"]
    command += ["--set", "epochs=1", "--set", "optim.save_every=2", "--set", "optim.dtype=float32"]
    cut = tmp_path / "cut"
    kill_when([*command, "-o", str(cut)], cut, "checkpoints/step-*")
    assert not (cut / "model").exists()
    assert run([*command, "-o", str(cut), "--resume", "-q"]) == 0
    assert run([*command, "-o", str(tmp_path / "whole"), "-q"]) == 0
    assert checkpoint_digest(cut / "model") == checkpoint_digest(tmp_path / "whole" / "model")
    steps = [
        [json.loads(line)["step"] for line in (tmp_path / name / "metrics.jsonl").open()] for name in ("cut", "whole")
    ]
    assert steps[0] == steps[1]
    assert {path.name for path in cut.iterdir()} == {path.name for path in (tmp_path / "whole").iterdir()}
