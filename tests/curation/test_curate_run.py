"""The stage as a whole: the same command gives the same data, stopped runs go on, errors have their codes."""

import json
import subprocess
import sys

import pytest

from rstar2cli.core import drain
from rstar2cli.core.errors import Stopped
from rstar2cli.curation.config import CurateConfig
from rstar2cli.curation.run import curate
from rstar2cli.records import Problem
from rstar2cli.shards.digest import data_digest
from rstar2cli.shards.lineage import Lineage
from rstar2cli.shards.reader import read_records
from rstar2cli.shards.writer import open_writer

LINEAGE = Lineage(command=[], config={}, inputs={})


def rstar2(*arguments, stdin=""):
    return subprocess.run(
        [sys.executable, "-m", "rstar2cli", "curate", *map(str, arguments)],
        capture_output=True,
        text=True,
        input=stdin,
        timeout=120,
        check=False,
    )


def write(out, stop_after=None, resume=False):
    with open_writer(str(out), Problem, lineage=LINEAGE, config={}, resume=resume) as writer:
        done = writer.existing("id") if resume else set()
        made = curate(["synth:"], CurateConfig(), seed=4, limit=40, on_reject=pytest.fail, done=done)
        for number, record in enumerate(made):
            if number == stop_after:
                raise Stopped("enough")
            writer.write(record)


def test_a_stopped_run_goes_on_to_the_same_data(tmp_path):
    write(tmp_path / "whole")
    with pytest.raises(Stopped):
        write(tmp_path / "parts", stop_after=13)
    write(tmp_path / "parts", resume=True)
    assert data_digest([str(tmp_path / "parts")]) == data_digest([str(tmp_path / "whole")])


def test_the_same_command_gives_the_same_digest_and_another_seed_another(tmp_path):
    digests = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        done = rstar2("synth:", "--limit", 50, "--seed", seed, "-o", tmp_path / name)
        assert (done.returncode, done.stdout) == (0, f"{tmp_path / name}\n"), done.stderr
        digests.append(data_digest([str(tmp_path / name)]))
    assert digests[0] == digests[1] != digests[2]


def test_the_stream_is_a_prefix_and_flows_into_another_curate():
    eight = rstar2("synth:", "--limit", 8, "-o", "-", "-q")
    sixteen = rstar2("synth:", "--limit", 16, "-o", "-", "-q")
    assert eight.returncode == 0
    assert sixteen.stdout.startswith(eight.stdout)
    again = rstar2("-", "-o", "-", "-q", stdin=eight.stdout)
    assert again.stdout == eight.stdout


@pytest.mark.parametrize(
    ("row", "values"),
    [
        ("no JSON", {}),
        ('{"question": "How much?"}', {}),
        ('{"question": "How much?", "answer": "1", "split": "train"}', {"split": "heldout"}),
    ],
    ids=["not a row", "rejected", "filtered"],
)
def test_a_stop_is_heeded_while_no_row_becomes_a_problem(tmp_path, row, values):
    raw = tmp_path / "raw.jsonl"
    raw.write_text(f"{row}\n" * 5)
    drain.request("SIGINT")
    try:
        with pytest.raises(Stopped, match="SIGINT: 1 input rows read"):
            list(curate([str(raw)], CurateConfig(**values), seed=0, on_reject=lambda _: None))
    finally:
        drain.reset()


def test_rejects_lie_beside_the_output_and_decide_the_exit_code(tmp_path):
    raw = tmp_path / "raw.jsonl"
    raw.write_text('{"question": "a", "answer": "1"}\n{"question": "b", "answer": "1/2"}\n')
    done = rstar2(raw, "-o", tmp_path / "out")
    assert done.returncode == 3
    assert "1 of 2 input rows rejected" in done.stderr
    (reject,) = [json.loads(line) for line in (tmp_path / "out" / "rejects.jsonl").read_text().splitlines()]
    assert (reject["line"], reject["reason"]) == (2, "the answer is no integer: '1/2'")
    assert len(list(read_records([str(tmp_path / "out")], Problem))) == 1
    assert rstar2(raw, "-o", tmp_path / "more", "--max-rejects", 0.5).returncode == 0
    assert rstar2(raw, "-o", tmp_path / "any", "--set", "answer_kind=any").returncode == 0


def test_rejects_are_judged_against_all_rows_after_a_resume_too(tmp_path, monkeypatch, capsys):
    from rstar2cli.cli.app import run
    from rstar2cli.core import drain
    from rstar2cli.records.codec import encode_line

    raw = tmp_path / "raw.jsonl"
    rows = [Problem(id=f"p{n}", source="s", prompt=f"{n}?", answer="1" if n else "1/2") for n in range(6)]
    raw.write_bytes(b"".join(map(encode_line, rows)))
    flags = ["curate", str(raw), "-o", str(tmp_path / "out"), "--max-rejects", "0.2"]
    real, stops = drain.check, iter([False] * 3 + [True])

    def stop_once(what: str) -> None:
        if next(stops, False):
            drain.request("SIGINT")
        real(what)

    with monkeypatch.context() as patch:
        patch.setattr(drain, "check", stop_once)
        assert run(flags) == 7
    drain.reset()
    capsys.readouterr()
    assert run([*flags, "--resume"]) == 0
    assert "1 of 6 input rows rejected" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["synth:coin"], 2, "did you mean 'coins'"),
        (["synth:", "--set", "slpit=train"], 2, "did you mean 'split'"),
        (["synth:", "--set", "faults.share=2"], 2, "faults.share must be from 0 to 1"),
        (["none.jsonl"], 4, "none.jsonl: no such file"),
    ],
)
def test_errors_have_their_code_and_leave_no_output(tmp_path, arguments, code, message):
    out = tmp_path / "out"
    done = rstar2(*arguments, "-o", out)
    assert (done.returncode, out.exists()) == (code, False)
    assert message in done.stderr


def test_verbose_tells_each_rejected_row_as_it_is_met(tmp_path):
    raw = tmp_path / "raw.jsonl"
    raw.write_text('{"question": "a", "answer": "1/2"}\n' * 5)
    told = f"warning: {raw}:5: the answer is no integer: '1/2'"
    command = [raw, "-o", tmp_path / "out", "--max-rejects", 1, "--overwrite"]
    assert told in rstar2(*command, "--verbose").stderr.splitlines()
    assert told not in rstar2(*command).stderr.splitlines()
    assert rstar2(*command, "-q", "-v").returncode == 2


@pytest.mark.parametrize("name", ["empty.jsonl", "-"])
def test_an_empty_input_is_missing_and_leaves_no_output(tmp_path, name):
    (tmp_path / "empty.jsonl").touch()
    done = rstar2(name if name == "-" else tmp_path / name, "-o", tmp_path / "out")
    assert done.returncode == 4, done.stderr
    assert f"no rows in {'-' if name == '-' else tmp_path / name}" in done.stderr
    assert not (tmp_path / "out" / "manifest.json").exists()
    assert rstar2("synth:", "--limit", 1, "-o", tmp_path / "out").returncode == 0, "OUT is free for the next try"


def test_an_empty_input_beside_another_is_no_error_and_bad_lines_are_rows(tmp_path):
    (tmp_path / "empty.jsonl").touch()
    assert rstar2(tmp_path / "empty.jsonl", "synth:", "--limit", 2, "-o", tmp_path / "out").returncode == 0
    assert rstar2("-", "-o", tmp_path / "bad", stdin="no JSON\n").returncode == 3


def test_a_dry_run_says_what_would_be_made_and_writes_nothing(tmp_path):
    done = rstar2("synth:", "--limit", 5, "--as", "conversations", "-o", tmp_path / "out", "--dry-run", "--json")
    shown = json.loads(done.stdout)
    assert shown["records"] == "conversation/1"
    assert shown["sources"] == ["synth: 5 problems of 22 families"]
    assert shown["config"]["emit"] == "conversations"
    assert not (tmp_path / "out").exists()
