"""``rstar2 eval`` end to end with a random tiny model."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from rstar2cli.cli.app import run
from rstar2cli.policy.tiny import init_tiny
from rstar2cli.records import Problem, Score, Trajectory
from rstar2cli.shards.reader import read_records

QUICK = ["-n", "1", "--set", "rollout.max_response=8", "--set", "rollout.dialogue.system=short"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("model") / "tiny"
    init_tiny(path)
    return str(path)


@pytest.fixture
def problems(tmp_path: Path) -> str:
    rows = [Problem(id=f"p{i}", source="s", prompt="1+1=?", answer="2", tags=["odd"] * (i % 2)) for i in range(4)]
    path = tmp_path / "problems.jsonl"
    path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    return str(path)


def test_path_on_stdout_result_beside(
    problems: str, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "out")
    assert run(["eval", problems, "-m", model, "-o", out, *QUICK]) == 0
    shown = capsys.readouterr()
    assert shown.out == f"{out}\n" and "pass@1" in shown.err and "4 problems" in shown.err
    assert json.loads((tmp_path / "out" / "result.json").read_text())["problems"] == 4
    assert run(["eval", problems, "-m", model, "-o", out, *QUICK]) == 5
    assert "--resume" in capsys.readouterr().err
    assert run(["eval", problems, "-m", model, "-o", out, *QUICK, "--resume", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["resumed"] == 4


def test_scores_stream(problems: str, model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["eval", problems, "-m", model, "-o", "-", "--limit", "2", *QUICK]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["kind"], row["problem_id"]) for row in rows] == [("score/1", "p0"), ("score/1", "p1")]


def test_dry_run_writes_nothing(problems: str, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run(["eval", problems, "-m", model, "-o", str(tmp_path / "out"), "--dry-run", "--where", "len(tags) > 0"]) == 0
    )
    out = capsys.readouterr().out
    assert not (tmp_path / "out").exists()
    assert "problems     2" in out and "trajectories 32" in out


def test_benchmark_rows_become_problems(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"id": i, "problem": "1+1=?", "answer": "002"} for i in range(120)]
    path = tmp_path / "aime.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + "{}\n")
    assert run(["eval", f"aime24:{path}", "-m", model, "-o", str(tmp_path / "out"), "--limit", "1", *QUICK]) == 0
    assert "1 of 121 input rows rejected" in capsys.readouterr().err
    (score,) = _scores(str(tmp_path / "out"), capsys)
    assert (score["benchmark"], score["problem_id"]) == ("aime24", "aime24/0")


def _scores(source: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    assert run(["head", source]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_missing_things(problems: str, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out")
    assert run(["eval", problems, "-m", str(tmp_path / "absent"), "-o", out]) == 4
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    assert run(["eval", str(empty), "-m", model, "-o", out]) in (3, 4)
    assert run(["eval", f"aime24:{tmp_path / 'absent.jsonl'}", "-m", model, "-o", out]) == 4
    assert capsys.readouterr().err.count("error:") == 3
    assert run(["eval", problems, "-m", model, "-o", out, "--where", "answer = 'none such'"]) == 4
    assert "no problems" in (err := capsys.readouterr().err) and "--where" in err
    assert not Path(out, "config.json").exists()


def _files(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_a_model_that_cannot_load_touches_nothing(
    problems: str, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(model, broken)
    config = json.loads((broken / "config.json").read_text())
    (broken / "config.json").write_text(json.dumps({**config, "intermediate_size": 64}))
    out = tmp_path / "out"
    assert run(["eval", problems, "-m", str(broken), "-o", str(out), *QUICK]) == 3
    assert not out.exists()
    assert run(["eval", problems, "-m", model, "-o", str(out), *QUICK]) == 0
    before = _files(out)
    assert run(["eval", problems, "-m", str(broken), "-o", str(out), *QUICK, "--overwrite"]) == 3
    assert _files(out) == before
    assert run(["eval", problems, "-m", model, "-o", str(out), *QUICK, "--overwrite", "--limit", "2"]) == 0
    assert len(list(read_records([str(out)], Score))) == 2
    assert capsys.readouterr().err.count("error:") == 2


def test_another_model_or_input_is_refused_on_resume(
    problems: str, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, flags = tmp_path / "out", ["-o", str(tmp_path / "out"), *QUICK]
    assert run(["eval", problems, "-m", model, *flags]) == 0
    init_tiny(tmp_path / "other", seed=9)
    assert run(["eval", problems, "-m", str(tmp_path / "other"), *flags, "--resume"]) == 5
    err = capsys.readouterr().err
    assert "another model" in err and "model_digest" in err and str(tmp_path / "other") in err
    text = Path(problems).read_text()
    Path(problems).write_text(text.replace("1+1", "1+2"))
    assert run(["eval", problems, "-m", model, *flags, "--resume"]) == 5
    assert f"another input: data.{problems}" in capsys.readouterr().err
    Path(problems).write_text(text)
    assert run(["eval", problems, "-m", model, *flags, "--resume"]) == 0
    assert json.loads((out / "config.json").read_text())["model"] == model


def test_a_signal_drains_and_resume_finishes(problems: str, model: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-m", "rstar2cli", "eval", problems, "-m", model, "-o", str(out), "-n", "60"]
    command += ["--set", "rollout.max_response=32", "--set", "rollout.dialogue.system=short"]
    command += ["--set", "rollout.save_every=8", "--quiet"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not list((out / "trajectories").glob("part-*.parquet")) and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 7 and "--resume" in err
    assert not (out / "manifest.json").exists()
    subprocess.run([*command, "--resume"], check=True, capture_output=True, timeout=280)
    ids = [record.id for record in read_records([str(out / "trajectories")], Trajectory)]
    assert len(ids) == len(set(ids)) == 240
    assert len(list(read_records([str(out)], Score))) == 240
