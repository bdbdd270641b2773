"""``rstar2 sft`` as a user runs it: results, rejects, bad input, signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rstar2cli.cli.app import run
from rstar2cli.core import drain
from rstar2cli.dialogue.dialogue import Dialogue
from rstar2cli.policy.digest import checkpoint_digest
from rstar2cli.policy.tiny import init_tiny

FAST = ["--set", "optim.lr=1e-2", "--set", "batch=4", "--set", "epochs=2", "--set", "dialogue.system=short"]


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("base") / "tiny"
    init_tiny(path, seed=5)
    return str(path)


def rows(count: int, *, answer: str = "four</reason>") -> list[dict]:
    return [
        {
            "kind": "conversation/1",
            "id": f"c{number}",
            "source": "test",
            "messages": [{"role": "user", "content": "2+2"}, {"role": "assistant", "content": answer}],
        }
        for number in range(count)
    ]


def write(path: Path, records: list[dict]) -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def test_a_run_prints_its_path_and_can_be_given_as_a_model(base, tmp_path, capsys):
    data, out = write(tmp_path / "d.jsonl", rows(8)), str(tmp_path / "run")
    assert run(["sft", data, "-m", base, "-o", out, *FAST, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["out"], result["conversations"], result["steps"]) == (out, 8, 4)
    assert run(["model", "info", out]) == 0
    assert json.loads(capsys.readouterr().out)["digest"] == result["digest"]
    assert run(["sft", data, "-m", base, "-o", out, *FAST]) == 5
    assert run(["sft", data, "-m", base, "-o", out, *FAST, "--resume", "-q"]) == 0
    assert capsys.readouterr().out == out + "\n"
    config = json.loads((Path(out) / "config.json").read_text())
    assert (config["model"], config["config"]["batch"], config["config"]["optim"]["schedule"]) == (base, 4, "cosine")


def test_dry_run_counts_and_writes_nothing(base, tmp_path, capsys):
    data, out = write(tmp_path / "d.jsonl", rows(8)), tmp_path / "run"
    assert run(["sft", data, "-m", base, "-o", str(out), *FAST, "--dry-run", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert (plan["conversations"], plan["steps"]) == (8, 4)
    assert not out.exists()


def test_too_many_rejects_stop_before_training(base, tmp_path, capsys):
    data, out = write(tmp_path / "d.jsonl", rows(4) + rows(1, answer="x" * 5000)), tmp_path / "run"
    assert run(["sft", data, "-m", base, "-o", str(out), *FAST]) == 3
    assert "max_length" in capsys.readouterr().err
    assert not out.exists()
    assert run(["sft", data, "-m", base, "-o", str(out), *FAST, "--max-rejects", "0.5"]) == 0
    assert capsys.readouterr().err.count("1 of 5 input rows rejected") == 1
    reject = json.loads((out / "rejects.jsonl").read_text())
    assert (reject["line"], "max_length" in reject["reason"]) == (5, True)


def test_rejects_go_to_the_file_that_is_named(base, tmp_path, capsys):
    data = write(tmp_path / "d.jsonl", rows(4) + rows(1, answer="x" * 5000))
    out, file = tmp_path / "run", tmp_path / "rejects"
    command = ["sft", data, "-m", base, "-o", str(out), *FAST, "--rejects", str(file)]
    assert run([*command, "--dry-run", "--max-rejects", "0.5"]) == 0
    assert not file.exists()
    assert run(command) == 3
    assert f"mend them ({file})" in capsys.readouterr().err
    assert "max_length" in json.loads(file.read_text())["reason"], "kept, though nothing was trained"
    assert run([*command, "--max-rejects", "0.5"]) == 0
    assert json.loads(file.read_text())["line"] == 5
    assert not (out / "rejects.jsonl").exists()


@pytest.mark.parametrize("where", [[], ["--where", "id != 'c0'"]])
def test_a_reject_names_the_line_it_came_from(base, tmp_path, where):
    first = write(tmp_path / "a.jsonl", rows(3))
    long = {**rows(1, answer="x" * 5000)[0], "id": "long"}
    second = write(tmp_path / "b.jsonl", [*rows(1), long])
    out = tmp_path / "run"
    assert run(["sft", first, second, "-m", base, "-o", str(out), *FAST, "--max-rejects", "0.5", *where]) == 0
    reject = json.loads((out / "rejects.jsonl").read_text())
    assert (reject["file"], reject["line"]) == (second, 2)
    assert reject["reason"].startswith("conversation long: ")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["{d}", "-m", "{t}/gone", "-o", "{t}/run"], 4, "no such model directory"),
        (["{t}/gone.jsonl", "-m", "{m}", "-o", "{t}/run"], 4, "gone.jsonl"),
        (["{e}", "-m", "{m}", "-o", "{t}/run"], 4, "no records in"),
        (["{d}", "-m", "{m}", "-o", "{t}/run", "--set", "optim.lrr=1"], 2, "did you mean 'optim.lr'"),
        (["{d}", "-m", "{m}", "-o", "{t}/run", "--set", "batch=0"], 2, "at least 1"),
        (["{d}", "-m", "{m}", "-o", "{f}"], 5, "is a file"),
        (["{d}", "-m", "{m}", "-o", "{t}/sft3.jsonl"], 2, "sft writes a directory"),
        (["{d}", "-m", "{m}", "-o", "{t}/run", "--resume"], 4, "no run to resume"),
        (["{d}", "-m", "{m}", "-o", "{t}/run", "--set", "optim.processes=2"], 2, "2 processes expected, 1 running"),
    ],
)
def test_what_goes_wrong_is_said(base, tmp_path, capsys, arguments, code, message):
    places = {"{t}": str(tmp_path), "{m}": base, "{d}": write(tmp_path / "d.jsonl", rows(2)), "{e}": ""}
    places["{e}"] = write(tmp_path / "e.jsonl", [])
    places["{f}"] = write(tmp_path / "file", [])
    for name, place in places.items():
        arguments = [argument.replace(name, place) for argument in arguments]
    assert run(["sft", *arguments]) == code
    assert message in capsys.readouterr().err


def test_a_signal_saves_and_the_resumed_run_is_the_same(base, tmp_path, capsys):
    data = write(tmp_path / "d.jsonl", rows(400))
    settings = [*FAST, "--set", "optim.dtype=float32"]
    command = ["sft", data, "-m", base, "-o", str(tmp_path / "stopped"), *settings]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([sys.executable, "-m", "rstar2cli", *command], env=environment, stderr=subprocess.PIPE)
    metrics = tmp_path / "stopped" / "metrics.jsonl"
    deadline = time.monotonic() + 120
    while not (metrics.exists() and metrics.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 7, err
    assert b"--resume" in err
    assert run([*command, "--resume", "-q"]) == 0
    whole = [part.replace("stopped", "whole") for part in command]
    assert run([*whole, "-q"]) == 0
    assert checkpoint_digest(tmp_path / "stopped" / "model") == checkpoint_digest(tmp_path / "whole" / "model")


@pytest.mark.parametrize("answer", ["four</reason>", "x" * 5000], ids=["rendered", "rejected"])
def test_a_stop_is_heeded_while_the_input_is_rendered(base, tmp_path, capsys, monkeypatch, answer):
    data, out = write(tmp_path / "d.jsonl", rows(9, answer=answer)), tmp_path / "run"
    render = Dialogue.render

    def render_and_stop(*arguments):
        drain.request("SIGTERM")
        return render(*arguments)

    monkeypatch.setattr(Dialogue, "render", render_and_stop)
    assert run(["sft", data, "-m", base, "-o", str(out), *FAST]) == 7
    assert capsys.readouterr().err == "error: stopped by SIGTERM: 2 input rows read, nothing begun\n"
    assert not out.exists()


def test_two_processes_train_as_one_and_the_first_one_writes(base, tmp_path):
    data = write(tmp_path / "d.jsonl", rows(8) + rows(1, answer="x" * 5000))

    def sft(out: str, *launcher: str) -> dict:
        done = subprocess.run(
            [sys.executable, *launcher, "-m", "rstar2cli", "sft", data, "-m", base, "-o", str(tmp_path / out), *FAST,
             "--set", "optim.dtype=float32", "--set", "optim.micro_tokens=64", "--max-rejects", "0.5", "--json"],
            env={**os.environ, "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"},
            capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout)

    one = sft("one")
    two = sft("two", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    assert two["steps"] == one["steps"] == 4
    assert two["loss"] == pytest.approx(one["loss"], rel=1e-4)
    assert len((tmp_path / "two" / "rejects.jsonl").read_text().splitlines()) == 1


def test_an_unknown_field_is_told_once_and_strict_refuses_it(base, tmp_path, capsys):
    data = write(tmp_path / "d.jsonl", [{**row, "level": 3} for row in rows(4)])
    assert run(["sft", data, "-m", base, "-o", str(tmp_path / "a"), *FAST]) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if "level" in line]
    assert len(told) == 1
    assert "extra" in told[0]
    assert run(["sft", data, "-m", base, "-o", str(tmp_path / "b"), *FAST, "--strict"]) == 3
    assert "level" in capsys.readouterr().err
