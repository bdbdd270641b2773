"""Stages that stop part-way: what is said then, what is kept, and that a resumed run ends as an undisturbed one."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from rstar2cli.cli.app import run
from rstar2cli.core.errors import Stopped


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every curate stops in its first record, for a reason that its room has advice for."""

    def stop(*_: object, **__: object) -> object:
        raise Stopped("too many are lost", hint="raise max_lost")
        yield

    monkeypatch.setattr("rstar2cli.curation.run.curate", stop)


def test_the_advice_of_the_room_and_the_command_that_resumes_are_both_shown(
    stopped: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["curate", "synth:", "-o", str(tmp_path / "out"), "--overwrite"]
    assert run(command) == 7
    assert capsys.readouterr().err.splitlines() == [
        "error: too many are lost",
        "  hint: raise max_lost",
        f"  hint: resume with: {shlex.join(['rstar2', *command[:-1], '--resume'])}",
    ]


@pytest.mark.parametrize("out", ["-", "{tmp}/out.jsonl", "{tmp}/out.parquet"])
def test_no_command_resumes_what_keeps_nothing(
    stopped: None, out: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["curate", "synth:", "-o", out.format(tmp=tmp_path)]) == 7
    assert capsys.readouterr().err.splitlines() == ["error: too many are lost", "  hint: raise max_lost"]


@pytest.mark.parametrize("command", ["sft", "train-rl"])
def test_a_training_does_not_write_to_stdout(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run([command, "in.jsonl", "-m", "model", "-o", "-"]) == 2
    assert "writes a directory" in capsys.readouterr().err
    assert not Path("-").exists()
