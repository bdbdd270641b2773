"""--overwrite as a user meets it: no input, no foreign directory and no old output is lost by it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rstar2cli.cli.app import run
from rstar2cli.policy.tiny import init_tiny
from rstar2cli.records import Conversation, Message, Problem
from rstar2cli.records.codec import encode_line

SHORT = ["--set", "dialogue.system=short", "--set", "max_response=40"]
EVAL = ["--set", "rollout.dialogue.system=short", "--set", "rollout.max_response=40"]
STAGES = {
    "curate": ["curate"],
    "rollout": ["rollout", "-m", "{tmp}/model", *SHORT],
    "eval": ["eval", "-m", "{tmp}/model", *EVAL],
    "sft": ["sft", "-m", "{tmp}/model", "--set", "dialogue.system=short", "--set", "epochs=1"],
    "train-rl": ["train-rl", "-m", "{tmp}/model", "--set", "steps=1"],
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with a tiny model, problems, conversations and what was made of them."""
    init_tiny(tmp_path / "model", seed=3, max_length=1024)
    problems = [Problem(id=f"p{n}", source="t", prompt=f"Say {n}.", answer=str(n)) for n in range(3)]
    (tmp_path / "p.jsonl").write_bytes(b"".join(map(encode_line, problems)))
    talk = Conversation(
        id="c",
        source="t",
        messages=[Message(role="user", content="1"), Message(role="assistant", content="2</reason>")],
    )
    (tmp_path / "c.jsonl").write_bytes(encode_line(talk))
    assert run(["curate", str(tmp_path / "p.jsonl"), "-o", str(tmp_path / "data"), "-q"]) == 0
    return tmp_path


def files(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def stage(name: str, place: Path, *more: object) -> list[str]:
    first, *rest = [argument.replace("{tmp}", str(place)) for argument in STAGES[name]]
    return [first, *map(str, more), *rest]


@pytest.mark.parametrize("name", STAGES)
@pytest.mark.parametrize(
    ("read", "out"),
    [
        ("data", "data"),
        ("data/part-00000.parquet", "data"),
        ("data/*.parquet", "data"),
        ("other-name", "data"),
        ("data", "other-name"),
        ("p.jsonl", "p.jsonl"),
        ("./model/../p.jsonl", "p.jsonl"),
        ("p.jsonl", "."),
    ],
)
def test_no_output_takes_the_place_of_its_input(place, monkeypatch, capsys, name, read, out):
    monkeypatch.chdir(place)
    (place / "other-name").symlink_to("data")
    before = files(place)
    a_file = out.endswith(".jsonl") and name in ("sft", "train-rl")  # whose output is a directory
    assert run(stage(name, place, read, "-o", out, "--overwrite")) == (2 if a_file else 5)
    err = capsys.readouterr().err
    assert a_file or (f"error: {out}: " in err and "would be lost" in err and "write to another OUT" in err)
    assert files(place) == before


def test_nor_of_its_model_nor_do_rejects(place, capsys):
    (place / "rl").mkdir()
    (place / "model").rename(place / "rl" / "model")
    (place / "rl" / "run.json").write_text('{"stage": "sft", "model": "model"}')
    before = files(place)
    for options in ([], ["--set", "steps=1"]):
        name = "train-rl" if options else "sft"
        command = [name, str(place / "p.jsonl"), "-m", str(place / "rl" / "model"), "-o", str(place / "rl")]
        assert run([*command, "--overwrite", *options]) == 5
        assert "would be lost" in capsys.readouterr().err
    source = str(place / "p.jsonl")
    assert run(["curate", source, "-o", str(place / "new"), "--rejects", source]) == 5
    assert files(place) == before


@pytest.mark.parametrize("name", ["curate", "rollout", "eval"])
@pytest.mark.parametrize("out", ["../other", "."])
def test_no_foreign_directory_is_written_into(place, monkeypatch, capsys, name, out):
    shutil.copytree(place / "model", place / "other")
    (place / "here").mkdir()
    (place / "here" / "thesis.txt").write_text("mine")
    monkeypatch.chdir(place / "here")
    before = files(place)
    assert run(stage(name, place, place / "p.jsonl", "-o", out, "--overwrite")) == 5
    assert f"error: {out}: not a shard directory, so it is not replaced" in capsys.readouterr().err
    assert files(place) == before


@pytest.mark.parametrize("out", ["out", "out.jsonl"])
def test_a_curate_that_rejects_too_much_leaves_the_old_output(place, capsys, out):
    flags = ["-o", str(place / out), "--overwrite"]
    assert run(["curate", str(place / "p.jsonl"), *flags]) == 0
    before = files(place)
    bad = place.parent / f"{place.name}-bad.jsonl"
    for rows in ("no JSON\n", '{"question": "a", "answer": "1"}\nno JSON\n'):
        bad.write_text(rows)
        rejects = place.parent / f"{place.name}-rejects.jsonl"
        assert run(["curate", str(bad), *flags, "--rejects", str(rejects)]) == 3
        assert f"mend them ({rejects})" in capsys.readouterr().err
        assert len(rejects.read_text().splitlines()) == 1
        assert files(place) == before


def test_an_interrupted_rollout_has_lost_nothing(place):
    out = place / "out"
    command = stage("rollout", place, place / "p.jsonl", "-o", out, "-q")
    assert run([*command, "--limit", "1"]) == 0
    before = files(out)
    process = subprocess.Popen(
        [sys.executable, "-m", "rstar2cli", *command, "-n", "200", "--set", "save_every=8", "--overwrite"],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not list(out.glob("part-00001.parquet")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 7, err
    assert files(out / ".replaced") == before


def test_an_eval_that_replaces_another_leaves_one_whole(place):
    out = place / "out"
    command = stage("eval", place, place / "p.jsonl", "-o", out, "-q", "--overwrite")
    assert run([*command, "-n", "2"]) == 0
    assert run([*command, "-n", "1"]) == 0
    assert json.loads((out / "result.json").read_text())["samples"] == 3
    assert {path.name for path in out.iterdir()} == {
        "part-00000.parquet", "manifest.json", "config.json", "result.json", "trajectories"
    }  # fmt: skip


def test_a_training_that_fails_before_it_saves_anything_leaves_the_old_run(place, capsys):
    out = place / "run"
    command = stage("sft", place, place / "c.jsonl", "-o", out, "-q", "--max-rejects", "0.5")
    assert run(command) == 0
    before = files(out)
    assert run([*command, "--overwrite", "--set", "optim.processes=2"]) == 2
    assert "2 processes expected" in capsys.readouterr().err
    assert files(out) == before
    assert run([*command, "--overwrite", "--seed", "1"]) == 0
    assert set(files(out)) == set(before) and files(out) != before
