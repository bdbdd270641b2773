"""The command: pipes, refusals, resume after a kill."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from rstar2cli.cli.app import run
from rstar2cli.policy.tiny import init_tiny
from rstar2cli.records import Trajectory
from rstar2cli.shards.digest import data_digest
from rstar2cli.shards.reader import read_records

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
SHORT = ["--set", "dialogue.system=short", "--set", "max_response=60"]


class Done(NamedTuple):
    """What a command left."""

    returncode: int
    stdout: str
    stderr: str


Command = Callable[..., Done]


@pytest.fixture
def rstar2(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command line in this process."""

    def command(*arguments: object, stdin: str = "") -> Done:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        capfd.readouterr()
        code = run([str(argument) for argument in arguments])
        return Done(code, *capfd.readouterr())

    return command


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "tiny"
    init_tiny(path, seed=3, max_length=1024)
    return path


@pytest.fixture(scope="module")
def problems(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("problems") / "problems.jsonl"
    rows = [
        {"kind": "problem/1", "id": f"p{n}", "source": "test", "prompt": f"Say {n}.", "answer": str(n)}
        for n in range(6)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_it_streams_and_warns_if_nothing_was_called(rstar2: Command, model: Path, problems: Path) -> None:
    done = rstar2("rollout", "-", "-m", model, "-o", "-", "-n", 2, *SHORT, stdin=problems.read_text())
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) == 12
    assert {row["kind"] for row in rows} == {"trajectory/1"}
    assert "none of 12 trajectories made a complete tool call" in done.stderr


def test_the_same_seed_gives_the_same_another_seed_does_not(
    rstar2: Command, model: Path, problems: Path, tmp_path: Path
) -> None:
    flags = ["-m", model, "--deterministic", "--set", "wave=4", *SHORT]
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert rstar2("rollout", problems, "-o", tmp_path / name, "--seed", seed, *flags).returncode == 0
    digests = [data_digest([str(tmp_path / name)]) for name in "abc"]
    assert digests[0] == digests[1] != digests[2]


def test_two_models_are_never_mixed_by_a_resume(rstar2: Command, model: Path, problems: Path, tmp_path: Path) -> None:
    init_tiny(tmp_path / "other", seed=4, max_length=1024)
    flags = ["rollout", problems, "-o", tmp_path / "out", "-n", 1, *SHORT]
    assert rstar2(*flags, "-m", model).returncode == 0
    (tmp_path / "out" / "manifest.json").unlink()  # as if it had been killed
    refused = rstar2(*flags, "-m", tmp_path / "other", "--resume")
    assert refused.returncode == 5
    assert "was begun with another model: model: " in refused.stderr
    assert "model_digest: " in refused.stderr


@pytest.mark.parametrize("mode", ["deterministic", "normal"])
def test_killed_and_resumed_it_ends_the_same(
    rstar2: Command, mode: str, model: Path, problems: Path, tmp_path: Path
) -> None:
    flags = ["rollout", problems, "-m", model, "-n", "8", "--set", "save_every=4", "--set", "wave=4", *SHORT]
    flags += ["--set", "in_flight=4", "--set", "max_response=120"]
    flags += ["--deterministic"] if mode == "deterministic" else []
    assert rstar2(*flags, "-o", tmp_path / "whole").returncode == 0

    killed = subprocess.Popen(
        [sys.executable, "-m", "rstar2cli", *map(str, flags), "-o", str(tmp_path / "cut")],
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while not list((tmp_path / "cut").glob("part-*.parquet")) and time.monotonic() < deadline:
        assert killed.poll() is None, "it was to be killed on the way"
        time.sleep(0.005)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait(10) == -signal.SIGKILL
    assert not (tmp_path / "cut" / "manifest.json").exists()

    refused = rstar2(*flags, "-o", tmp_path / "cut")
    assert refused.returncode == 5
    assert "--resume" in refused.stderr
    resumed = rstar2(*flags, "-o", tmp_path / "cut", "--resume", "--json")
    assert resumed.returncode == 0, resumed.stderr
    assert 0 < json.loads(resumed.stdout)["made"] < 48
    ids = [[t.id for t in read_records([str(tmp_path / name)], Trajectory)] for name in ("whole", "cut")]
    assert sorted(ids[0]) == sorted(ids[1])
    assert len(set(ids[1])) == 48
    if mode == "deterministic":
        assert data_digest([str(tmp_path / "whole")]) == data_digest([str(tmp_path / "cut")])
    again = rstar2(*flags, "-o", tmp_path / "cut", "--resume", "--json")
    assert again.returncode == 0
    result = json.loads(again.stdout)
    assert (result["made"], result["reward"]) == (0, None), "nothing is left to do"


def test_ctrl_c_drains_saves_and_says_how_to_go_on(
    rstar2: Command, model: Path, problems: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    command = ["rollout", problems, "-m", model, "-n", "40", "--set", "save_every=5", "--set", "in_flight=4", *SHORT]
    running = subprocess.Popen(
        [sys.executable, "-m", "rstar2cli", *map(str, command), "-o", str(out)],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not list(out.glob("part-*.parquet")) and time.monotonic() < deadline:
        time.sleep(0.005)
    running.send_signal(signal.SIGINT)
    _, stderr = running.communicate(timeout=60)
    assert running.returncode == 7, stderr
    assert "--resume" in stderr
    resumed = rstar2(*command, "-o", out, "--resume", "--json")
    assert resumed.returncode == 0, resumed.stderr
    assert len({t.id for t in read_records([str(out)], Trajectory)}) == 240


def test_a_dry_run_says_what_would_run_and_writes_nothing(
    rstar2: Command, model: Path, problems: Path, tmp_path: Path
) -> None:
    done = rstar2("rollout", problems, "-m", model, "-o", tmp_path / "x", "-n", 4, "--dry-run", "--json", *SHORT)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["trajectories"] == 24
    assert not (tmp_path / "x").exists()


def test_long_prompts_are_rejected_with_their_id(rstar2: Command, model: Path, problems: Path, tmp_path: Path) -> None:
    long = {"kind": "problem/1", "id": "long", "source": "t", "prompt": "x" * 3000, "answer": "1"}
    text = problems.read_text() + json.dumps(long) + "\n"
    done = rstar2("rollout", "-", "-m", model, "-o", tmp_path / "o", *SHORT, "--max-rejects", "0.5", stdin=text)
    assert done.returncode == 0, done.stderr
    reject = json.loads((tmp_path / "o" / "rejects.jsonl").read_text())
    assert (reject["file"], reject["line"]) == ("-", 7)
    assert reject["reason"].startswith("problem long: ")
    refused = rstar2("rollout", "-", "-m", model, "-o", tmp_path / "p", *SHORT, stdin=text)
    assert refused.returncode == 3


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["-m", "nowhere/at/all"], 4, "no such model"),
        (["--where", "answer = 'none such'"], 4, "no problems"),
        (["--set", "max_turnz=3"], 2, "max_turns"),
        (["--set", "samples=0"], 2, "samples"),
        (["--set", "engine.name=http"], 2, "engine.endpoints"),
        (["--set", "engine.max_length=5000"], 2, "1024"),
    ],
)
def test_what_is_wrong_is_said(
    rstar2: Command, arguments: list[str], code: int, words: str, model: Path, problems: Path, tmp_path: Path
) -> None:
    done = rstar2("rollout", problems, "-m", model, "-o", tmp_path / "out", *arguments)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("stage", ["rollout", "eval", "train-rl"])
def test_two_problems_of_one_id_are_refused_with_their_places(
    rstar2: Command, stage: str, model: Path, problems: Path, tmp_path: Path
) -> None:
    more = tmp_path / "more.jsonl"
    more.write_text(problems.read_text().replace('"p0"', '"q0"').replace("Say 1", "Tell 1"))
    done = rstar2(stage, problems, more, "-m", model, "-o", tmp_path / "out")
    assert done.returncode == 3
    assert f"error: {more}:2: the problem id 'p1' is that of {problems}:2 too" in done.stderr
    done = rstar2(stage, problems, problems, "-m", model, "-o", tmp_path / "out")
    assert f"error: {problems}:1: the problem id 'p0' is given twice" in done.stderr
    where = ["--where", "id = 'q0' or prompt like 'Tell%'", "--dry-run"]
    assert rstar2(stage, problems, more, "-m", model, "-o", tmp_path / "out", *where).returncode == 0
