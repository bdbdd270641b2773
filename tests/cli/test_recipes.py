"""The packaged experiments."""

from __future__ import annotations

import importlib
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from rstar2cli.cli import recipes, smoke
from rstar2cli.cli.app import load_command, run
from rstar2cli.cli.reference import leaves
from rstar2cli.cli.registry import COMMANDS
from rstar2cli.core.config import resolve, toml_layer

USES = sorted(
    {
        (entry.name, words[1], words[2])
        for entry in recipes.recipes()
        for words in re.findall(
            r"^((?:rstar2|stage) ([\w-]+) .*?-c \S*/([\w-]+)\.toml)", entry.script.read_text(), re.M
        )
    }
)
"""(recipe, command, settings file) of every line with ``-c``."""


@pytest.mark.parametrize(("name", "command", "settings"), USES)
def test_every_settings_file_fits_the_command_that_reads_it(name: str, command: str, settings: str) -> None:
    module = importlib.import_module(f"rstar2cli.cli.{COMMANDS[command].module}")
    resolve(module.main.config, [toml_layer(str(recipes.recipe(name).settings / f"{settings}.toml"))])


def test_every_settings_file_is_used() -> None:
    shipped = {(path.parent.name, path.stem) for path in recipes.directory().rglob("*.toml")}
    assert shipped == {(name, settings) for name, _, settings in USES}


@pytest.mark.parametrize("entry", recipes.recipes(), ids=lambda entry: entry.name)
def test_every_recipe_is_a_sound_script(entry: recipes.Recipe) -> None:
    assert entry.summary
    assert entry.script.stat().st_mode & stat.S_IXUSR
    subprocess.run(["bash", "-n", str(entry.script)], check=True)
    assert "set -euo pipefail" in entry.script.read_text()


@pytest.mark.parametrize("entry", recipes.recipes(), ids=lambda entry: entry.name)
def test_the_lines_of_a_recipe_name_real_commands(entry: recipes.Recipe) -> None:
    named = set(re.findall(r"^(?:rstar2|stage) ([\w-]+)", entry.script.read_text(), re.M))
    assert {"sft", "train-rl", "eval", "diff"} <= named
    for name in named:
        assert load_command(name).name == name


def test_copy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["recipe", "cp", "smoke", str(tmp_path / "mine")]) == 0
    script = Path(capsys.readouterr().out.strip())
    assert script == tmp_path / "mine" / "smoke.sh" and os.access(script, os.X_OK)
    assert (tmp_path / "mine" / "smoke" / "rl.toml").is_file()
    assert run(["recipe", "cp", "smoke", str(tmp_path / "mine")]) == 5
    assert run(["recipe", "cp", "smoke", str(tmp_path / "mine"), "--overwrite"]) == 0
    assert run(["recipe", "cp", "smokk", str(tmp_path)]) == 2
    assert "did you mean 'smoke'" in capsys.readouterr().err


def script(path: Path, text: str) -> Path:
    path.write_text("set -euo pipefail\n" + text)
    return path


def test_smoke_passes_settings_and_the_exit_code(tmp_path: Path) -> None:
    text = f'echo "$RUN $(command -v python)" > {tmp_path}/out; exit 7'
    assert smoke._run(script(tmp_path / "s.sh", text), {"RUN": "here"}) == 7
    where, python = (tmp_path / "out").read_text().split()
    assert where == "here" and Path(python).parent == Path(sys.executable).parent


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_reach_the_stage_that_runs(tmp_path: Path, number: signal.Signals) -> None:
    stage = tmp_path / "stage.py"
    stage.write_text(
        "import signal, sys, time, pathlib\n"
        "for n in (signal.SIGINT, signal.SIGTERM):\n"
        f"    signal.signal(n, lambda n, f: (pathlib.Path({str(tmp_path / 'drained')!r}).touch(), sys.exit(7)))\n"
        f"pathlib.Path({str(tmp_path / 'ready')!r}).touch()\n"
        "time.sleep(30)\n"
    )
    text = f"trap : TERM\n{sys.executable} {stage}\ntouch {tmp_path}/went-on\n"

    def interrupt() -> None:
        while not (tmp_path / "ready").exists():
            time.sleep(0.02)
        os.kill(os.getpid(), number)

    threading.Thread(target=interrupt, daemon=True).start()
    assert smoke._run(script(tmp_path / "s.sh", text), {}) == 7
    assert (tmp_path / "drained").exists() and not (tmp_path / "went-on").exists()


def test_examples_name_only_what_the_smoke_run_writes():
    written = set(re.findall(r'(?:-o )"\$RUN/([\w-]+)', recipes.recipe("smoke").script.read_text()))
    pages = "".join(command.epilog or "" for _, command in leaves())
    named = set(re.findall(r"runs/smoke/([\w-]+)", pages))
    assert named - written == set()
    assert named
