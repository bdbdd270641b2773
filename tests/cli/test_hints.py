"""Messages that say what there is and what to do, for what is often mistaken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rstar2cli.cli.app import run

FILES = {
    "d/p.jsonl": '{"kind":"problem/1","id":"p","source":"t","prompt":"1","answer":"1"}\n',
    "pretty.json": '{\n "a": 1\n}\n',
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)
    assert run(["curate", "synth:", "--limit", "2", "-o", "shards", "-q"]) == 0
    assert run(["curate", "synth:", "--limit", "1", "-o", "talks", "--as", "conversations", "-q"]) == 0
    return tmp_path


COLUMNS = "this has id, source, prompt, answer, answer_kind, attempts, solved, tags, extra"


@pytest.mark.parametrize(
    ("arguments", "code", "message", "hint"),
    [
        (["schema", "nope"], 2, "nope: neither a kind nor an input", "kinds: problem, conversation, trajectory"),
        (["eval", "nope:a.jsonl", "-m", "m", "-o", "o"], 2, "no benchmark 'nope'", "benchmarks: aime24, aime25, gsm8k"),
        (["model", "import", "pretty.json", "-o", "o"], 3, "pretty.json: not a GGUF file", "a GGUF file, a model"),
        (["sql", "select * from nope", "shards"], 2, "Table with name nope does not exist", COLUMNS),
        (["sql", "select nope from this", "shards"], 2, 'column "nope" not found', COLUMNS),
        (["head", "shards/manifest.json"], 3, "kept beside records, and holds none", "in shards"),
        (["head", "shards/config.json"], 3, "kept beside records, and holds none", "in shards"),
        (["head", "pretty.json"], 3, "pretty.json:1: not JSON", "one JSON object per line"),
        (["rollout", "talks", "-m", "m", "-o", "o"], 3, "expected a problem, got a conversation", "problem records"),
        (["rollout", "d", "-m", "shards", "-o", "o"], 4, "shards: a shard directory, not a model", "a run directory"),
    ],
)
def test_what_was_meant(
    place: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str, hint: str
) -> None:
    capsys.readouterr()
    assert run(arguments) == code
    error, told = capsys.readouterr().err.splitlines()
    assert error.startswith("error: ") and message in error
    assert told.startswith("  hint: ") and hint in told


def test_a_line_that_is_too_long_says_what_a_line_is(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("long.jsonl").write_bytes(b'{"a":"' + b"x" * (17 << 20) + b'"}\n')
    assert run(["head", "long.jsonl"]) == 3
    err = capsys.readouterr().err
    assert "long.jsonl:1: line of more than 16 MiB" in err and "one JSON object per line" in err


def test_when_no_row_can_be_used_more_rejects_are_no_advice(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.jsonl").write_text("no JSON\n")
    assert run(["curate", "bad.jsonl", "-o", "o"]) == 3
    err = capsys.readouterr().err
    assert "mend them (o/rejects.jsonl)" in err and "--max-rejects" not in err


def test_a_full_disk_names_resume_only_where_there_is_something_to_resume(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import errno

    def full(real: Callable[..., object], after: int) -> Callable[..., object]:
        calls = 0

        def call(*given: object) -> object:
            nonlocal calls
            calls += 1
            if calls > after:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(*given)

        return call

    from rstar2cli.policy import checkpoint
    from rstar2cli.shards import part

    monkeypatch.setattr(checkpoint, "_sync_tree", full(print, 0))
    assert run(["model", "init", "-o", "m"]) == 6
    assert capsys.readouterr().err.splitlines()[-1] == "  hint: make room and run the command again, or write elsewhere"
    monkeypatch.setattr(part, "publish", full(part.publish, 1))
    assert run(["curate", "synth:", "--limit", "4", "--rows-per-part", "2", "-o", "o", "-q"]) == 6
    assert "--resume goes on from there" in capsys.readouterr().err
