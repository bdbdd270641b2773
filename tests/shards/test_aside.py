"""What --overwrite replaces is lost only when the new output is complete."""

from __future__ import annotations

from pathlib import Path

import pytest
from shard_helpers import ids, names, problems, write, writer

from rstar2cli.core.errors import InputMissing, OutputConflict, Stopped
from rstar2cli.shards.aside import REPLACED, REPLACING, Aside
from rstar2cli.shards.manifest import read_manifest
from rstar2cli.shards.rejects import Reject


def files(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def cut(path: Path, error: type[BaseException] = RuntimeError, rows: int = 3, **options: object) -> None:
    with pytest.raises(error), writer(path, rows_per_part=2, overwrite=True, **options) as open_one:
        for record in problems(rows, 10):
            open_one.write(record)
        raise error("cut short")


def test_a_run_that_keeps_nothing_puts_the_old_back(tmp_path):
    old = write(tmp_path / "d", problems(5), rows_per_part=2)
    (old / "notes.txt").write_text("mine")
    before = files(old)
    with pytest.raises(RuntimeError), writer(old, overwrite=True) as open_one:
        open_one.write(problems(1, 10)[0])
        open_one.reject(Reject(file="in", line=1, reason="bad"))
        assert read_manifest(old) is None, "the old data do not pass for the new"
        raise RuntimeError
    assert files(old) == before
    assert not open_one.kept


@pytest.mark.parametrize("error", [RuntimeError, Stopped])
def test_a_run_that_keeps_parts_keeps_the_old_beside_them_until_it_is_complete(tmp_path, error):
    old = write(tmp_path / "d", problems(5), rows_per_part=2)
    before = files(old)
    cut(old, error)
    assert files(old / REPLACED) == before
    with pytest.raises(InputMissing) as caught:
        ids(old)
    assert str(old / REPLACED) in str(caught.value.hint)
    with writer(old, rows_per_part=2, resume=True) as open_one:
        for record in problems(3, 10)[open_one.rows :]:
            open_one.write(record)
    assert ids(old) == ["p10", "p11", "p12"]
    assert REPLACED not in names(old)


def test_what_is_begun_twice_keeps_the_complete_one(tmp_path):
    old = write(tmp_path / "d", problems(5))
    before = files(old)
    cut(old)
    cut(old, rows=4)
    assert files(old / REPLACED) == before
    write(old, problems(1), overwrite=True)
    assert ids(old) == ["p0"] and REPLACED not in names(old)


class Killed(BaseException):
    """Stands for a kill: nothing after it runs."""


@pytest.mark.parametrize("survived", range(8))
def test_a_kill_while_the_old_is_moved_loses_nothing(tmp_path, monkeypatch, survived):
    """Three entries and the directory, there and back."""
    old = write(tmp_path / "d", problems(1))
    before, real, count = files(old), Path.rename, 0

    def rename(path: Path, target: Path) -> Path:
        nonlocal count
        count += 1
        if count > survived:
            raise Killed
        return real(path, target)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Path, "rename", rename)
        Aside(old).take(["manifest.json", "config.json", "part-00000.parquet"])
        Aside(old).put_back([])
    with pytest.raises(OutputConflict, match="exists"):
        writer(old)
    write(old, problems(2, 7), overwrite=True)
    assert ids(old) == ["p7", "p8"] and not {REPLACED, REPLACING} & names(old)
    assert set(before) == names(old)


def test_a_kill_just_after_the_new_was_complete_does_not_bring_the_old_back(tmp_path, monkeypatch):
    old = write(tmp_path / "d", problems(3))
    with monkeypatch.context() as patch:
        patch.setattr(Aside, "drop", lambda _: None)
        write(old, problems(1, 7), overwrite=True)
    assert ids(old) == ["p7"]
    cut(old, rows=1)
    assert ids(old) == ["p7"]


FOREIGN = {
    "model": {"config.json": '{"model_type": "qwen3"}', "model.safetensors": ""},
    "run": {"run.json": '{"stage": "sft"}', "config.json": '{"stage": "sft"}'},
    "other": {"notes.txt": "mine", "part-0.parquet": ""},
    "data set": {"manifest.json": "{}", "part-00000.parquet": ""},
}


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("options", [{}, {"overwrite": True}, {"resume": True}], ids=["", "overwrite", "resume"])
def test_only_shard_directories_are_written_into(tmp_path, kind, options):
    for name, text in FOREIGN[kind].items():
        (tmp_path / name).write_text(text)
    before = files(tmp_path)
    with pytest.raises(OutputConflict, match="not a shard directory"):
        writer(tmp_path, **options)
    assert files(tmp_path) == before


@pytest.mark.parametrize("name", ["d", "a.jsonl"])
def test_a_directory_is_no_file_and_a_file_no_directory(tmp_path, name):
    if name == "d":
        (tmp_path / name).write_text("mine")
    else:
        (tmp_path / name).mkdir()
    with pytest.raises(OutputConflict, match="directory, so"):
        writer(tmp_path / name, overwrite=True)
