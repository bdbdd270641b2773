"""The frame of the command line: laziness, help, errors, exit codes."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

from rstar2cli.cli.app import run
from rstar2cli.cli.reference import leaves
from rstar2cli.cli.registry import COMMANDS

HEAVY = {"torch", "vllm", "transformers", "datasets", "pyarrow", "sympy", "duckdb", "rich", "pydantic", "numpy"}

PROBE = """
import sys
from rstar2cli.cli.app import run
code = run(sys.argv[1:])
print("modules:", " ".join(sorted({name.partition(".")[0] for name in sys.modules})))
sys.exit(code)
"""


def rstar2(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rstar2cli", *arguments], capture_output=True, text=True, timeout=60, check=False
    )


def imported(*arguments: str) -> tuple[set[str], int]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    line = next(line for line in done.stdout.splitlines() if line.startswith("modules:"))
    return set(line.split()[1:]), done.returncode


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--help"], 0),
        (["--version"], 0),
        (["rolout"], 2),
        (["sft", "--help"], 0),
        (["sft"], 2),
        (["train-rl", "x", "-o", "y", "-m", "z", "--set", "no.such=1"], 2),
        (["rollout", "--keys"], 0),
        (["curate", "--no-such-option"], 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_help_and_usage_errors_import_nothing_heavy(arguments, code):
    modules, got = imported(*arguments)
    assert not modules & HEAVY
    assert got == code


def test_help_lists_every_command_with_its_summary():
    text = rstar2("--help").stdout
    for name, entry in COMMANDS.items():
        assert name in text
        assert entry.summary.split()[0] in text


def test_a_mistyped_command_gets_the_nearest_name():
    done = rstar2("rolout")
    assert done.returncode == 2
    assert "did you mean 'rollout'" in done.stderr


def test_an_unknown_configuration_key_gets_the_nearest_name():
    done = rstar2("train-rl", "in", "-m", "m", "-o", "out", "--set", "optim.lrr=1")
    assert done.returncode == 2
    assert "unknown key 'optim.lrr'; did you mean 'optim.lr'?" in done.stderr


def test_errors_show_no_traceback_unless_asked(tmp_path):
    done = rstar2("count", str(tmp_path / "absent"))
    assert done.returncode == 4
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("error: ")


@pytest.mark.parametrize(
    ("number", "code", "words"),
    [
        (errno.ENOSPC, 6, ["place: can't write: No space left on device", "make room"]),
        (errno.EDQUOT, 6, ["place: can't write", "make room"]),
        (errno.ENOENT, 4, ["place: can't read: No such file or directory"]),
        (errno.EROFS, 5, ["place: Read-only file system"]),
    ],
)
def test_a_failure_of_the_file_system_has_the_code_of_what_it_means(number, code, words, monkeypatch, capsys):
    def fail(*_):
        raise OSError(number, os.strerror(number), "place")

    monkeypatch.setattr("rstar2cli.cli.recipes.recipes", fail)
    assert run(["recipe", "ls"]) == code
    shown = capsys.readouterr().err
    assert [word for word in words if word not in shown] == []


def test_what_exists_and_may_not_be_read_was_an_input(tmp_path, monkeypatch, capsys):
    secret = tmp_path / "secret"
    secret.touch()

    def fail(*_):
        raise PermissionError(errno.EACCES, "Permission denied", str(secret))

    monkeypatch.setattr("rstar2cli.cli.recipes.recipes", fail)
    monkeypatch.setattr("os.access", lambda *_: False)  # root may read everything
    assert run(["recipe", "ls"]) == 4
    assert "can't read" in capsys.readouterr().err


def test_an_input_that_can_not_even_be_looked_for_is_missing(capsys):
    assert run(["count", "x" * 300]) == 4
    assert "can't read: File name too long" in capsys.readouterr().err


def test_resume_and_overwrite_exclude_each_other():
    done = rstar2("curate", "synth:", "-o", "out", "--resume", "--overwrite")
    assert done.returncode == 2
    assert "exclude each other" in done.stderr


def test_json_with_records_on_stdout_is_refused():
    done = rstar2("curate", "synth:", "-o", "-", "--json")
    assert done.returncode == 2
    assert "both claim stdout" in done.stderr


@pytest.mark.parametrize(("name", "command"), list(leaves()), ids=[name for name, _ in leaves()])
def test_every_command_and_option_has_help(name, command):
    assert command.help, name
    assert [p.name for p in command.params if p.name != "help" and not getattr(p, "help", None)] == []
    assert "Examples:" in (command.epilog or ""), f"{name} has no example lines"
