"""Places that another user may not enter or read: exit 4 for inputs, 5 for outputs, never a traceback."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rstar2cli.cli.app import run
from rstar2cli.policy.tiny import init_tiny

WITHOUT = "-dac_override,-dac_read_search"
AS_ANOTHER = ["setpriv", f"--inh-caps={WITHOUT}", f"--bounding-set={WITHOUT}"]
"""Root without the right to pass permissions by: as another user, but one who can read the interpreter's files."""
COMMANDS = """
import sys
from rstar2cli.cli import app
for line in sys.stdin.read().splitlines():
    print(line, file=sys.stderr)
    print(app.run(line.split()), file=sys.stdout)
"""

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None, reason="only root can own files that it may not read"
)


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """Anyone may enter; ``priv`` in it belongs to another user alone."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o777)
        init_tiny(path / "priv" / "model", seed=1)
        init_tiny(path / "model", seed=1)
        (path / "p.jsonl").write_text('{"kind":"problem/1","id":"p","source":"t","prompt":"1","answer":"1"}\n')
        (path / "priv" / "p.jsonl").write_text((path / "p.jsonl").read_text())
        closed(path / "priv")
        yield path


def closed(path: Path) -> None:
    os.chown(path, 65534, 65534)
    path.chmod(0o700 if path.is_dir() else 0o600)


def as_another(place: Path, *lines: str) -> tuple[list[int], str]:
    done = subprocess.run(
        [*AS_ANOTHER, sys.executable, "-c", COMMANDS],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=False,
        cwd=place,
    )
    assert "Traceback" not in done.stderr and "a bug" not in done.stderr, done.stderr
    return [int(line) for line in done.stdout.splitlines() if line.isdigit()], done.stderr


READ = [
    "model info priv",
    "model info priv/model",
    "rollout p.jsonl -m priv -o new",
    "eval p.jsonl -m priv/model -o new",
    "sft p.jsonl -m priv -o new",
    "train-rl p.jsonl -m priv/model -o new",
    "curate priv/p.jsonl -o new",
    "curate priv/p.jsonl -o p.jsonl --overwrite",
    "head priv/p.jsonl",
    "show priv/p.jsonl",
    "plot priv",
]
WRITTEN = [
    "curate synth: --limit 1 -o priv/x",
    "curate synth: --limit 1 -o priv/x.jsonl",
    "curate synth: --limit 1 -o priv",
    "rollout p.jsonl -m model -o priv/x",
    "eval p.jsonl -m model -o priv/x --overwrite",
    "sft p.jsonl -m model -o priv/x",
    "train-rl p.jsonl -m model -o priv/x",
    "model init -o priv/x",
]


def test_what_may_not_be_entered(place):
    codes, errors = as_another(place, *READ, *WRITTEN)
    assert codes == [4] * len(READ) + [5] * len(WRITTEN), errors
    assert errors.count("Permission denied") == len(READ) + len(WRITTEN), errors


def test_a_model_is_for_all_whom_the_umask_lets_read(place):
    assert {file.stat().st_mode & 0o777 for file in (place / "model").iterdir()} == {0o644}
    codes, errors = as_another(place, "model info model")
    assert codes == [0], errors
    before = os.umask(0o077)
    try:
        assert run(["model", "init", "-o", str(place / "closed")]) == 0
    finally:
        os.umask(before)
    for file in (place / "closed").iterdir():
        os.chown(file, 65534, 65534)
    (place / "closed").chmod(0o755)
    assert {file.stat().st_mode & 0o777 for file in (place / "closed").iterdir()} == {0o600}
    codes, errors = as_another(place, "model info closed", "rollout p.jsonl -m closed -o new")
    assert codes == [4, 4] and errors.count("Permission denied") == 2, errors
