"""Who may write a run directory, whenever an earlier writer was killed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rstar2cli.core.errors import InputMissing, OutputConflict, Stopped
from rstar2cli.shards import atomic
from rstar2cli.training import rundir
from rstar2cli.training.rundir import check_out, open_run


class Killed(BaseException):
    """Stands for a kill: nothing after it runs but the kernel's release of the lock."""


def files(path: Path) -> set[str]:
    return {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}


def begin(path: Path, **options: object) -> None:
    with open_run(path, stage="sft", config={"lr": 2}, **options):
        pass


def old_run(path: Path) -> Path:
    with open_run(path, stage="sft", config={"lr": 1}) as run:
        (run / "metrics.jsonl").write_text("old")
        (run / "checkpoints" / "step-00001").mkdir(parents=True)
        (run / "checkpoints" / "step-00001" / "state.json").write_text("old")
    return path


# the old is moved aside (mark, configuration, metrics, checkpoints, all of it), then mark and configuration of the new
@pytest.mark.parametrize("survived", range(7))
def test_a_kill_while_an_old_run_is_replaced_leaves_one_that_can_be_replaced(tmp_path, monkeypatch, survived):
    path = old_run(tmp_path / "run")
    count = 0

    def counted(real):
        def call(*arguments, **options):
            nonlocal count
            count += 1
            if count > survived:
                raise Killed
            return real(*arguments, **options)

        return call

    with monkeypatch.context() as patch:
        patch.setattr(rundir, "write_bytes", counted(rundir.write_bytes))
        patch.setattr(Path, "rename", counted(Path.rename))
        patch.setattr(rundir, "OutputLock", _Lock)
        with pytest.raises(Killed):
            begin(path, overwrite=True)
    # never a mixture of the old run and the new; nothing of the old is lost
    with pytest.raises((OutputConflict, InputMissing)):
        begin(path, resume=True)
    old = path if survived < 5 else path / ".replaced"
    assert json.loads((old / "config.json").read_text()) == {"lr": 1}
    assert (old / "metrics.jsonl").read_text() == (old / "checkpoints/step-00001/state.json").read_text() == "old"
    done(path, overwrite=True)
    assert files(path) == {"run.json", "config.json"}
    assert json.loads((path / "config.json").read_text()) == {"lr": 2}
    begin(path, resume=True)


def done(path: Path, **options: object) -> None:
    with open_run(path, stage="sft", config={"lr": 2}, **options):
        rundir.mark_done(path)


def test_what_is_replaced_is_back_if_the_new_run_saves_nothing(tmp_path):
    path = old_run(tmp_path / "run")
    before = {name: (path / name).read_bytes() for name in files(path)}
    with pytest.raises(RuntimeError), open_run(path, stage="sft", config={"lr": 2}, overwrite=True) as new:
        (new / "metrics.jsonl").write_text("new")
        raise RuntimeError
    assert {name: (path / name).read_bytes() for name in files(path)} == before


def test_what_is_replaced_stays_until_the_new_run_is_done(tmp_path):
    path = old_run(tmp_path / "run")
    (path / "notes.txt").write_text("mine")
    with pytest.raises(Stopped) as caught, open_run(path, stage="sft", config={"lr": 2}, overwrite=True) as new:
        (new / "checkpoints" / "step-00001").mkdir(parents=True)
        (new / "checkpoints" / "step-00001" / "state.json").write_text("new")
        raise Stopped("stopped")
    assert caught.value.resumable
    assert (path / ".replaced" / "checkpoints" / "step-00001" / "state.json").read_text() == "old"
    done(path, resume=True)
    assert files(path) == {"run.json", "config.json", "notes.txt", "checkpoints/step-00001/state.json"}


class _Lock:
    def __init__(self, *_: object) -> None:
        pass

    def release(self) -> None:
        pass


def test_what_a_killed_start_left_is_no_content(tmp_path):
    path = tmp_path / "run"
    path.mkdir()
    (path / ".lock").write_text("process 1 on elsewhere")
    atomic.temp_path(path / "run.json").write_text("{")
    check_out(path, stage="sft", resume=False, overwrite=False)
    begin(path)
    assert files(path) == {"run.json", "config.json"}


def test_a_stop_that_left_nothing_new_is_not_resumed(tmp_path):
    path = old_run(tmp_path / "run")
    with pytest.raises(Stopped) as caught, open_run(path, stage="sft", config={"lr": 2}, overwrite=True):
        raise Stopped("stopped")
    assert not caught.value.resumable


def test_what_is_not_a_run_is_not_replaced(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for overwrite in (False, True):
        with pytest.raises(OutputConflict):
            begin(tmp_path, overwrite=overwrite)
    assert files(tmp_path) == {"notes.txt"}
