"""The command train-rl from outside: exit codes, stdout, signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rl_digits import make_problems  # type: ignore[import-not-found]

from rstar2cli.records.codec import encode_line

SETTINGS = """
prompts_per_step = 2
samples = 8
[optim]
lr = 1e-3
device = "cpu"
dtype = "float32"
[rollout]
max_turns = 2
max_response = 60
wave = 8
[rollout.engine]
device = "cpu"
dtype = "float32"
max_running = 8
[rollout.sandbox]
workers = 1
[rollout.dialogue]
system = "short"
"""


def command(place: Path, model: str, out: str, *more: str) -> list[str]:
    (place / "rl.toml").write_text(SETTINGS)
    (place / "problems.jsonl").write_bytes(b"".join(map(encode_line, make_problems())))
    program = [sys.executable, "-m", "rstar2cli", "train-rl", str(place / "problems.jsonl")]
    return [*program, "-m", model, "-c", str(place / "rl.toml"), "-o", str(place / out), *more]


def call(place: Path, model: str, out: str, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(place, model, out, *more), capture_output=True, text=True, timeout=240, check=False)


def test_a_run_prints_its_path_and_a_second_is_refused(digit_model: str, tmp_path: Path) -> None:
    first = call(tmp_path, digit_model, "rl", "--set", "steps=1", "--json")
    assert first.returncode == 0, first.stderr
    result = json.loads(first.stdout)
    assert (result["out"], result["steps"]) == (str(tmp_path / "rl"), 1)
    second = call(tmp_path, digit_model, "rl", "--set", "steps=1")
    assert second.returncode == 5
    assert "--resume" in second.stderr and "--overwrite" in second.stderr
    for path in ("run.json", "config.json", "metrics.jsonl", "model/config.json", "checkpoints/step-00001/state.json"):
        assert (tmp_path / "rl" / path).exists(), path


def test_dry_run_touches_nothing(digit_model: str, tmp_path: Path) -> None:
    done = call(tmp_path, digit_model, "rl", "--dry-run", "--set", "steps=3")
    assert done.returncode == 0, done.stderr
    assert "48 in all" in done.stdout
    assert not (tmp_path / "rl").exists()


def test_sigterm_drains_with_7_and_the_run_resumes(digit_model: str, tmp_path: Path) -> None:
    arguments = command(tmp_path, digit_model, "rl", "--set", "steps=200", "--deterministic")
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        history = tmp_path / "rl" / "metrics.jsonl"
        deadline = time.monotonic() + 200
        while not (history.exists() and history.stat().st_size) and time.monotonic() < deadline:
            assert running.poll() is None, running.communicate()
            time.sleep(0.1)
        running.send_signal(signal.SIGTERM)
        _, errors = running.communicate(timeout=120)
    assert running.returncode == 7, errors
    assert "--resume" in errors
    assert not (tmp_path / "rl" / "model").exists()
    assert list((tmp_path / "rl" / "checkpoints").iterdir())
    other = call(tmp_path, digit_model, "rl", "--set", "steps=201", "--deterministic", "--resume")
    assert other.returncode == 5
    assert "steps: 200 → 201" in other.stderr


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        (("--set", "samples=2"), 2, "samples must be at least 4"),
        (("--set", "rollouts.samples=2"), 2, "unknown key"),
        (("--where", "answer = 'none such'"), 4, "no problems"),
        (("--rollouts", "nowhere"), 4, "nowhere"),
        (("--resume",), 4, "no run to resume"),
    ],
)
def test_bad_calls(more: tuple[str, ...], code: int, message: str, digit_model: str, tmp_path: Path) -> None:
    ended = call(tmp_path, digit_model, "rl", *more)
    assert ended.returncode == code, ended.stderr
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr


def test_rejects_go_to_the_file_that_is_named(digit_model: str, tmp_path: Path) -> None:
    arguments = command(tmp_path, digit_model, "rl", "--rejects", str(tmp_path / "r"), "--where", "answer = 'none'")
    with (tmp_path / "problems.jsonl").open("a") as problems:
        problems.write("no JSON\n")
    ended = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 3, ended.stderr
    assert json.loads((tmp_path / "r").read_text())["raw"] == "no JSON"
    assert not (tmp_path / "rl").exists()


def test_rollouts_of_a_step_train_it(digit_model: str, tmp_path: Path) -> None:
    """What `rollout --step 1` makes is what the loop would have made, if both bear the run's name."""
    looped = call(tmp_path, digit_model, "a/rl", "--set", "steps=1", "--deterministic", "--json")
    assert looped.returncode == 0, looped.stderr
    program = [sys.executable, "-m", "rstar2cli", "rollout", str(tmp_path / "problems.jsonl"), "-m", digit_model]
    settings = ["max_turns=2", "max_response=60", "wave=8", "run=rl", "problems_per_step=2", "dialogue.system=short"]
    settings += ["engine.device=cpu", "engine.dtype=float32", "engine.max_running=8"]
    options = [part for setting in settings for part in ("--set", setting)]
    made = subprocess.run(
        [*program, *options, "--step", "1", "-n", "8", "--deterministic", "-o", str(tmp_path / "r1")],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    stored = ("--set", "steps=1", "--deterministic", "--json", "--rollouts", str(tmp_path / "r1"))
    trained = call(tmp_path, digit_model, "b/rl", *stored)
    assert trained.returncode == 0, trained.stderr
    assert json.loads(trained.stdout)["digest"] == json.loads(looped.stdout)["digest"]


def test_two_processes_train_as_one(digit_model: str, tmp_path: Path) -> None:
    """The first generates and writes; both train on their share."""
    more = ("--set", "steps=2", "--deterministic", "--json")
    one = call(tmp_path, digit_model, "one/rl", *more)
    arguments = command(tmp_path, digit_model, "two/rl", *more)
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    two = subprocess.run(
        [sys.executable, *torchrun, *arguments[1:]],
        env={**os.environ, "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert one.returncode == two.returncode == 0, two.stderr[-3000:]
    assert len(two.stdout.splitlines()) == 1  # one process reports
    alone, together = json.loads(one.stdout)["metrics"], json.loads(two.stdout)["metrics"]
    assert together["rollouts"] == alone["rollouts"]
    for step in ("loss", "grad_norm", "reward", "counted_tokens", "entropy"):
        assert together[step] == pytest.approx(alone[step], rel=0.05, abs=1e-3), step
    assert len(list((tmp_path / "two" / "rl" / "rollouts").iterdir())) == 2
