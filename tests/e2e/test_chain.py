"""The stages one after the other with a random tiny model, and every way to look at what they wrote."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rstar2cli.cli.app import run
from rstar2cli.policy.tiny import init_tiny

SHORT = ["--set", "max_response=8", "--set", "dialogue.system=short", "--set", "sandbox.workers=1"]
OPTIM = ["--set", "optim.device=cpu", "--set", "optim.dtype=float32"]


def _under(prefix: str) -> list[str]:
    return [word if word == "--set" else f"{prefix}.{word}" for word in SHORT]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the output of every stage."""
    here = tmp_path_factory.mktemp("chain")
    init_tiny(here / "base", max_length=4096)

    def stage(name: str, given: str, out: str, *more: str) -> None:
        source = given if given.endswith(":") else str(here / given)
        assert run([name, source, *more, "-o", str(here / out), "--quiet"]) == 0, (name, more)

    base = ["-m", str(here / "base")]
    stage("curate", "synth:", "problems", "--limit", "4", "--rows-per-part", "3")
    stage("curate", "synth:", "conversations", "--limit", "4", "--as", "conversations")
    stage("sft", "conversations", "sft", *base, "--set", "dialogue.system=short", "--set", "epochs=1", *OPTIM)
    stage("rollout", "problems", "rollouts", "-m", str(here / "sft"), "-n", "2", *SHORT)
    sizes = ["--set", "steps=1", "--set", "prompts_per_step=2", "--set", "samples=4"]
    stage("train-rl", "problems", "rl", "-m", str(here / "sft"), *sizes, *OPTIM, *_under("rollout"))
    stage("eval", "problems", "eval", "-m", str(here / "rl"), "-n", "1", *_under("rollout"))
    return here


OUTPUTS = {
    "problems": ("problem", 4),
    "conversations": ("conversation", 4),
    "rollouts": ("trajectory", 8),
    "sft": ("metric", None),
    "rl": ("metric", None),
    "rl/rollouts": ("trajectory", 8),
    "rl/selections": ("selection", 8),
    "eval": ("score", 4),
    "eval/trajectories": ("trajectory", 4),
}


@pytest.mark.parametrize("output", OUTPUTS)
def test_sql_answers_on_every_output(place: Path, output: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sql", "select count(*) as n from this", f"this={place / output}", "--format", "jsonl"]) == 0
    rows = OUTPUTS[output][1]
    answer = json.loads(capsys.readouterr().out)
    assert answer["n"] == rows or (rows is None and answer["n"] > 5)


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("command", ["head", "count", "schema", "stats", "show", "validate"])
def test_every_command_looks_at_every_kind(
    place: Path, command: str, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([command, str(place / output)]) == 0, capsys.readouterr().err
    shown = capsys.readouterr().out
    kind, rows = OUTPUTS[output]
    if command == "count" and rows is not None:
        assert str(rows) in shown
    elif command == "schema":
        assert kind in shown
    elif command == "head":
        assert 0 < len(shown.splitlines()) <= (rows or 10)
    assert command == "validate" or shown


def test_rows_per_part(place: Path) -> None:
    assert [path.name for path in sorted((place / "problems").glob("part-*"))] == [
        "part-00000.parquet",
        "part-00001.parquet",
    ]


def test_every_trajectory_of_a_training_names_its_model(place: Path) -> None:
    """The lineage of what train-rl wrote has the digest of the model that it started from."""
    trained, plain = (
        json.loads((place / name / "manifest.json").read_text()) for name in ("rl/rollouts/step-00001", "rollouts")
    )
    assert trained["lineage"]["model"] == plain["lineage"]["model"] is not None


def test_stages_chain_through_pipes(place: Path) -> None:
    rstar2 = f"{sys.executable} -m rstar2cli"
    script = (
        f"set -euo pipefail; {rstar2} curate synth: --limit 3 -o - "
        f"| {rstar2} rollout - -m {place / 'sft'} -n 2 {' '.join(SHORT)} -o - | {rstar2} stats - --format jsonl"
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    columns = {row["column"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert columns["rows"]["mean"] == 6


def test_stored_verdicts_are_those_of_verify(place: Path) -> None:
    rstar2 = f"{sys.executable} -m rstar2cli"
    query = "select gold, answer as pred, verdict = 'correct' as expected from this"
    script = (
        f'set -euo pipefail; {rstar2} sql "{query}" this={place / "rl" / "rollouts"} -f jsonl '
        f"| {rstar2} verify - --expected-field expected"
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 8 and "8 of 8 agree" in done.stderr
