"""Stages that stop part-way: what is said then, what is kept, and that a resumed run ends as an undisturbed one."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rstar2cli.cli.app import run
from rstar2cli.core import drain
from rstar2cli.core.errors import Stopped
from rstar2cli.curation.run import curate
from rstar2cli.records import Problem
from rstar2cli.shards.digest import data_digest

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every curate stops after its first record, for a reason that its room has advice for."""
    original = curate

    def stop(*given: Any, **named: Any) -> Iterator[Problem]:
        yield next(iter(original(*given, **named)))
        raise Stopped("too many are lost", hint="raise max_lost")

    monkeypatch.setattr("rstar2cli.curation.run.curate", stop)


def test_the_advice_of_the_room_and_the_command_that_resumes_are_both_shown(
    stopped: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["curate", "synth:", "-o", str(tmp_path / "out"), "--overwrite"]
    assert run(command) == 7
    assert capsys.readouterr().err.splitlines() == [
        f"error: too many are lost; 1 problem records are saved in {tmp_path / 'out'}",
        "  hint: raise max_lost",
        f"  hint: resume with: {shlex.join(['rstar2', *command[:-1], '--resume'])}",
    ]


@pytest.mark.parametrize("out", ["-", "{tmp}/out.jsonl", "{tmp}/out.parquet"])
def test_no_command_resumes_what_keeps_nothing(
    stopped: None, out: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = out.format(tmp=tmp_path)
    assert run(["curate", "synth:", "-o", out]) == 7
    kept = f"nothing is saved: {out} is written whole or not at all"
    if out == "-":
        kept = "1 problem records went to standard output"
    assert capsys.readouterr().err.splitlines() == [f"error: too many are lost; {kept}", "  hint: raise max_lost"]


@pytest.mark.parametrize("old", [False, True])
def test_a_stop_before_anything_is_saved_says_so(
    old: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    command = ["curate", "synth:", "--limit", "2", "-o", str(out), "-q"]
    if old:
        assert run(command) == 0
    monkeypatch.setattr(drain, "requested", lambda: True)
    real = drain.check

    def asked(what: str, **options: bool) -> None:
        drain.request("SIGINT")
        real(what, **options)

    monkeypatch.setattr(drain, "check", asked)
    monkeypatch.setattr("rstar2cli.curation.problems._Reader._generated", lambda self, _: self._count_row() or iter(()))
    assert run([*command, *(["--overwrite"] if old else [])]) == 7
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: stopped by SIGINT: ")
    assert line.endswith(f"; nothing is saved in {out}" + (", which is as it was" if old else ""))
    assert (out / "manifest.json").exists() == old


def test_ctrl_c_while_the_command_starts(tmp_path: Path) -> None:
    """Python tells on stderr what it has imported: the first modules of ours are in, others are to come."""
    command = subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "rstar2cli", "curate", "synth:", "-o", str(tmp_path / "out")],
        env=ENVIRONMENT, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert command.stderr is not None
    next(line for line in command.stderr if "typer" in line)
    command.send_signal(signal.SIGINT)
    errors = [line for line in command.stderr if not line.startswith("import time:")]
    assert (command.wait(60), errors) == (130, ["error: interrupted\n"])


def test_ctrl_c_ends_a_query_in_one_line(tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert run(["curate", "synth:", "--limit", "400", "-o", str(data), "-q"]) == 0
    query = "select count(*) from this a, this b, this c, this d where a.prompt || b.prompt > c.prompt || d.prompt"
    command = start("sql", query, data)
    wait(command, lambda: False, seconds=3)
    command.send_signal(signal.SIGINT)
    shown, errors = command.communicate(timeout=60)
    assert (command.returncode, shown, errors) == (130, "", "error: interrupted\n")


@pytest.mark.parametrize("command", ["sft", "train-rl"])
def test_a_training_does_not_write_to_stdout(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run([command, "in.jsonl", "-m", "model", "-o", "-"]) == 2
    assert "writes a directory" in capsys.readouterr().err
    assert not Path("-").exists()


def start(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "rstar2cli", *map(str, arguments)],
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait(command: subprocess.Popen[str], until: Callable[[], object], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not until() and time.monotonic() < deadline:
        assert command.poll() is None, "it was to be stopped on the way"
        time.sleep(0.01)


def test_ctrl_c_drains_a_curate_and_the_command_it_shows_ends_as_an_undisturbed_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["curate", "synth:", "--limit", "6000", "-q"]
    out = tmp_path / "cut"
    command = start(*arguments, "-o", out)
    wait(command, lambda: list(out.glob(".part-*")))
    command.send_signal(signal.SIGINT)
    shown, errors = command.communicate(timeout=60)
    assert (command.returncode, shown) == (7, ""), errors
    assert "once more to stop at once" in errors and "Traceback" not in errors
    assert not (out / "manifest.json").exists()

    (hint,) = [line for line in errors.splitlines() if "resume with: " in line]
    again = shlex.split(hint.partition("resume with: ")[2])
    assert again == ["rstar2", *arguments, "-o", str(out), "--resume"]
    assert run(again[1:]) == 0
    assert run([*arguments, "-o", str(tmp_path / "whole")]) == 0
    assert data_digest([str(out)]) == data_digest([str(tmp_path / "whole")])


def test_a_second_ctrl_c_stops_at_once(tmp_path: Path) -> None:
    """The command waits for its input, which no first Ctrl-C can end."""
    out = tmp_path / "out"
    command = start("curate", "-", "-o", out)
    wait(command, lambda: (out / "config.json").exists())
    command.send_signal(signal.SIGINT)
    assert command.stderr is not None
    assert "once more to stop at once" in command.stderr.readline()
    command.send_signal(signal.SIGINT)
    _, errors = command.communicate(timeout=60)
    assert (command.returncode, errors) == (130, "stopped at once\n")


def test_a_stream_whose_reader_goes_ends_quietly() -> None:
    """As in ``rstar2 curate synth: -o - | head -n 1``."""
    command = start("curate", "synth:", "--limit", 10**6, "-o", "-", "-q")
    assert command.stdout is not None and command.stderr is not None
    assert command.stdout.readline().startswith('{"kind":"problem/1"')
    command.stdout.close()
    assert command.wait(60) == 141
    assert command.stderr.read() == ""
