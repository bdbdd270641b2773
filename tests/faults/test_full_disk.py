"""A disk that is really full, under what training and models write: the right error, and nothing half written."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from rstar2cli.cli.app import run
from rstar2cli.core.errors import EnvironmentMissing
from rstar2cli.policy.tiny import init_tiny
from rstar2cli.training.metrics import MetricsLog
from rstar2cli.training.state import TrainState, newest_state, save_state


def mount(target: Path, size: str) -> bool:
    target.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(target)]
    return subprocess.run(["mount", *options], capture_output=True, check=False).returncode == 0


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 128 KiB."""
    if not mount(tmp_path / "small", "128k"):
        pytest.skip("may not mount a file system here")
    yield tmp_path / "small"
    subprocess.run(["umount", "--lazy", str(tmp_path / "small")], check=True)


def fill(disk: Path, leave: int = 0) -> None:
    """Write until there is no room but for ``leave`` bytes."""
    with (disk / "filler").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            file.truncate(max(0, file.tell() - leave))


def state(step: int, size: int) -> TrainState:
    return TrainState(step=step, tensors={"a": torch.zeros(size)})


def test_a_checkpoint(small: Path) -> None:
    save_state(small, state(1, 1000), keep=1)
    with pytest.raises(EnvironmentMissing, match=r"step-00002: can't write: No space left") as caught:
        save_state(small, state(2, 100_000), keep=1)
    assert "make room" in caught.value.hint
    assert [path.name for path in small.iterdir()] == ["step-00001"]
    kept = newest_state(small)
    assert kept is not None and kept.step == 1


@pytest.mark.parametrize("leave", [0, 8192, 110_000])
def test_a_model(small: Path, leave: int) -> None:
    """However far the writing gets: the configuration, the tokenizer or the weights find no room."""
    fill(small, leave)
    with pytest.raises(EnvironmentMissing, match=r"tiny: can't write: No space left") as caught:
        init_tiny(small / "tiny")
    assert "make room" in caught.value.hint
    assert [path.name for path in small.iterdir()] == ["filler"]


def test_the_metrics_keep_whole_lines(small: Path) -> None:
    log = MetricsLog(small, "run")
    log.append(1, {"loss": 1.0})
    fill(small)
    with pytest.raises(EnvironmentMissing, match=r"metrics\.jsonl: can't write: No space left"):
        for step in range(2, 1000):
            log.append(step, {f"value_{number}": 1.0 for number in range(50)})
    (small / "filler").unlink()
    log.truncate(1)
    assert (small / "metrics.jsonl").read_bytes().count(b"\n") == 1


def test_the_command_says_so_and_is_no_bug(small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = tmp_path / "base"
    init_tiny(base)
    assert run(["model", "import", str(base), "-o", str(small / "copy")]) == 6
    assert "make room" in capsys.readouterr().err
    data = tmp_path / "data.jsonl"
    data.write_text(
        '{"kind":"conversation/1","id":"c","source":"t","messages":[{"role":"user","content":"2+2"},'
        '{"role":"assistant","content":"four</reason>"}]}\n'
    )
    short = ["--set", "dialogue.system=short", "--set", "epochs=1"]
    assert run(["sft", str(data), "-m", str(base), "-o", str(small / "run"), *short]) == 6
    assert "make room" in capsys.readouterr().err
    assert not [path for path in small.rglob("*") if path.suffix == ".safetensors"]
