"""A stderr whose reader has gone, or that was never there, costs no work and changes no exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rstar2cli.cli.say import say
from rstar2cli.policy.tiny import init_tiny
from rstar2cli.records import Problem
from rstar2cli.shards.reader import read_records

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def start(*arguments: object) -> subprocess.Popen[str]:
    """A command whose stderr is a pipe that nobody reads any more."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "rstar2cli", *map(str, arguments)],
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=writer,
            text=True,
        )
    finally:
        os.close(writer)


def finish(command: subprocess.Popen[str]) -> tuple[int, str]:
    out, _ = command.communicate(timeout=100)
    return command.returncode, out


def foreign(path: Path, count: int) -> Path:
    rows = [{"question": f"How much is {n} + 1?", "answer": str(n + 1)} for n in range(count)]
    path.write_text("".join(json.dumps(row) + "\n" for row in [*rows, {"question": "no answer"}]))
    return path


def test_a_stage_finishes_and_its_warnings_are_lost(tmp_path: Path) -> None:
    out = tmp_path / "out"
    raw = foreign(tmp_path / "raw.jsonl", 5)
    assert finish(start("curate", raw, "-o", out, "--max-rejects", 1)) == (0, f"{out}\n")
    assert len(list(read_records([str(out)], Problem))) == 5


def test_an_error_keeps_its_code(tmp_path: Path) -> None:
    assert finish(start("curate", "none.jsonl", "-o", tmp_path / "out")) == (4, "")


def test_a_training_finishes(tmp_path: Path) -> None:
    init_tiny(tmp_path / "tiny", seed=5)
    messages = [{"role": "user", "content": "2+2"}, {"role": "assistant", "content": "four</reason>"}]
    rows = [{"kind": "conversation/1", "id": f"c{n}", "source": "test", "messages": messages} for n in range(4)]
    data = tmp_path / "d.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "run"
    settings = ["--set", "batch=4", "--set", "epochs=1", "--set", "dialogue.system=short"]
    assert finish(start("sft", data, "-m", tmp_path / "tiny", "-o", out, *settings)) == (0, f"{out}\n")
    assert json.loads((out / "run.json").read_text())["done"]


def test_a_signal_still_drains(tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = start("curate", "synth:", "--limit", 10**6, "-o", out)
    deadline = time.monotonic() + 60
    while not list(out.glob(".part-*")) and time.monotonic() < deadline:
        assert command.poll() is None
        time.sleep(0.02)
    command.send_signal(signal.SIGTERM)
    assert finish(command) == (7, "")
    assert list(out.glob("part-*.parquet")), "what was made is kept"


def test_without_any_stderr_nothing_of_it_goes_into_the_records(tmp_path: Path) -> None:
    raw = foreign(tmp_path / "raw.jsonl", 3)
    command = ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-m", "rstar2cli"]
    done = subprocess.run(
        [*command, "curate", str(raw), "-o", "-", "--max-rejects", "1"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert [json.loads(line)["answer"] for line in done.stdout.splitlines()] == ["1", "2", "3"]


def test_a_full_disk_behind_stderr_raises_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stderr", full)
        say("lost")
        say("lost too")
