"""What a user sees of bad inputs and outputs: exit code and message of whole commands."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_bad_shards import problem, write

from rstar2cli.cli.app import run
from rstar2cli.records.codec import encode_line

READERS = [["head", "{}"], ["count", "{}"], ["sql", "select count(*) from this", "{}"], ["validate", "{}"]]


def command(arguments: list[str], path: Path) -> int:
    return run([argument.replace("{}", str(path)) for argument in arguments])


@pytest.mark.parametrize("arguments", READERS, ids=lambda arguments: arguments[0])
@pytest.mark.parametrize("ending", ["gz", "zst"])
@pytest.mark.parametrize("left", [12, -9])
def test_a_short_cut_off_file_is_bad_data(tmp_path, capsys, arguments, ending, left):
    path = write(tmp_path / f"a.jsonl.{ending}", 3)
    path.write_bytes(path.read_bytes()[:left])
    assert command(arguments, path) == 3
    shown = capsys.readouterr()
    assert "damaged or cut off" in shown.err + shown.out
    assert f"a.jsonl.{ending}" in shown.err + shown.out


@pytest.mark.parametrize("arguments", READERS[:3], ids=lambda arguments: arguments[0])
def test_a_long_first_line_is_called_so(tmp_path, capsys, arguments):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"kind":"problem/1","id":"' + b"x" * (20 << 20) + b'"}\n' + encode_line(problem(1)))
    assert command(arguments, path) == 3
    assert "a.jsonl:1: line of 20 MiB, more than 16 MiB" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", READERS, ids=lambda arguments: arguments[0])
def test_a_cut_off_parquet_file(tmp_path, capsys, arguments):
    path = write(tmp_path / "d", 50)
    part = path / "part-00000.parquet"
    part.write_bytes(part.read_bytes()[:100])
    assert command(arguments, path) == 3
    shown = capsys.readouterr()
    assert "part-00000.parquet" in shown.err + shown.out and "cut-off Parquet file" in shown.err + shown.out


@pytest.mark.parametrize("arguments", READERS, ids=lambda arguments: arguments[0])
def test_a_directory_without_a_manifest(tmp_path, capsys, arguments):
    path = write(tmp_path / "d", 3)
    (path / "manifest.json").unlink()
    assert command(arguments, path) == 4
    err = capsys.readouterr().err
    assert f"error: {path}: no manifest.json: its writer has not finished" in err and "--resume" in err


HOLDER = """
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from rstar2cli.shards.lock import OutputLock
lock = OutputLock(Path(sys.argv[1]) / ".lock", sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("stage", ["curate", "sft"])
def test_an_output_that_another_process_writes(tmp_path, capsys, stage):
    out = tmp_path / "out"
    out.mkdir()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(out)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "held\n"
        assert run([*STAGES[stage](tmp_path), "-o", str(out)]) == 5
        err = capsys.readouterr().err
        assert f"{out}: being written by another process (process {holder.pid} on " in err
        assert set(os.listdir(out)) == {".lock"}
    finally:
        holder.communicate("", timeout=30)
    assert run([*STAGES[stage](tmp_path), "-o", str(out), "-q"]) == 0  # its lock died with it


def sft(tmp_path: Path) -> list[str]:
    from rstar2cli.policy.tiny import init_tiny

    if not (tmp_path / "base").exists():
        init_tiny(tmp_path / "base")
    data = tmp_path / "data.jsonl"
    data.write_text(
        '{"kind":"conversation/1","id":"c","source":"t","messages":[{"role":"user","content":"2+2"},'
        '{"role":"assistant","content":"four</reason>"}]}\n'
    )
    short = ["--set", "dialogue.system=short", "--set", "epochs=1"]
    return ["sft", str(data), "-m", str(tmp_path / "base"), *short]


STAGES = {"curate": lambda _: ["curate", "synth:", "--limit", "3"], "sft": sft}


@pytest.fixture
def closed() -> Iterator[Path]:
    """A directory that anyone may enter and only its owner may write; no one where the tests do not run as root."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place)
        path.chmod(0o755 if os.geteuid() == 0 else 0o555)
        yield path
        path.chmod(0o755)


def test_a_place_that_may_not_be_written(closed):
    """As another user than root, who may write anywhere."""
    code = (
        "import os, sys\n"
        "from rstar2cli.cli.app import run\n"
        "from rstar2cli.cli import curate\n"
        "import rstar2cli.curation.run, rstar2cli.shards.directory, rstar2cli.shards.single\n"
        "if os.geteuid() == 0: os.setgid(65534), os.setuid(65534)\n"
        "sys.exit(run(['curate', 'synth:', '--limit', '3', '-o', sys.argv[1]]))\n"
    )
    for out in ("d", "a.jsonl", "a.parquet"):
        done = subprocess.run(
            [sys.executable, "-c", code, str(closed / out)], capture_output=True, text=True, check=False, cwd="/"
        )
        assert done.returncode == 5, done.stderr
        assert "can't write: Permission denied" in done.stderr and "choose an output" in done.stderr
    assert not list(closed.iterdir())
