"""A hub that does not answer: one error, without what the libraries tell of each try."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

WITHOUT_WAITING = """
import sys, time
time.sleep = lambda seconds: None
from rstar2cli.cli.app import run
sys.exit(run(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["curate", "hf:openai/gsm8k@main:test"], "hf:openai/gsm8k@main:test"),
        (["eval", "aime24:", "-m", "none"], "aime24 ("),
    ],
)
def test_one_error_and_nothing_else(tmp_path, command, name):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_WAITING, *command, "-o", str(tmp_path / "out")],
        env={**os.environ, "HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    error, hint = done.stderr.splitlines()
    assert done.returncode == 4
    assert error.startswith(f"error: {name}") and error.endswith(
        "the hub can't be reached, and there is no copy of it here"
    )
    assert hint.startswith("  hint: ")
    assert not (tmp_path / "out").exists()
