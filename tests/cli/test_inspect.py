"""head, count, schema, stats, sql, validate on the command line."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys

import pytest

from rstar2cli.cli.app import run
from rstar2cli.records import KINDS, Metric, Problem, Selection
from rstar2cli.records.codec import encode_line
from rstar2cli.shards.lineage import Lineage
from rstar2cli.shards.writer import open_writer

EVIL = "\x1b]52;c;ZXZpbA==\x07\x1b[31mred[bold]x[/bold]"


def problem(number: int) -> Problem:
    return Problem(
        id=f"p{number}",
        source="a" if number % 2 else "b",
        prompt=EVIL,
        answer=str(number),
        tags=["t"] * 20,
        extra={"split": "train"},
    )


@pytest.fixture
def data(tmp_path):
    out = tmp_path / "d"
    with open_writer(str(out), Problem, lineage=Lineage(command=[], config={}, inputs={}), config={}) as writer:
        for number in range(12):
            writer.write(problem(number))
    return str(out)


@pytest.fixture
def rstar2(capfd):
    def call(*arguments: str, code: int = 0) -> str:
        capfd.readouterr()
        got = run(list(arguments))
        out, err = capfd.readouterr()
        assert got == code, err
        call.err = err
        return out

    return call


def rows(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_head_in_a_pipe_gives_records_that_can_be_read_again(rstar2, data, tmp_path):
    text = rstar2("head", "-n", "3", data)
    assert [row["id"] for row in rows(text)] == ["p0", "p1", "p2"]
    (tmp_path / "again.jsonl").write_text(text)
    assert rstar2("count", str(tmp_path / "again.jsonl")) == "3\n"
    assert rstar2("head", str(tmp_path / "again.jsonl")) == text


def test_head_where(rstar2, data):
    assert [row["id"] for row in rows(rstar2("head", data, "--where", "answer = '7'"))] == ["p7"]


@pytest.mark.parametrize("command", ["head", "count", "stats"])
def test_a_bad_where_says_what_the_columns_are(rstar2, data, command):
    rstar2(command, data, "--where", "nope", code=2)
    assert "--where 'nope'" in rstar2.err
    assert "hint: an SQL expression over the columns of a problem: id, source" in rstar2.err


@pytest.mark.parametrize("format", ["table", "jsonl", "json", "csv", "md"])
@pytest.mark.parametrize(
    "command",
    [["head"], ["count", "--by", "source,split"], ["stats"], ["sql", "SELECT * FROM this"], ["schema"]],
    ids=lambda command: command[0],
)
def test_every_format_of_every_reader(rstar2, data, command, format):
    text = rstar2(*command, data, "--format", format)
    assert len(text.splitlines()) >= 2
    assert "\x1b" not in text if format != "csv" else True
    if format == "json":
        assert isinstance(json.loads(text), list)
    if format == "jsonl":
        assert rows(text)
    if format == "csv":
        assert len({len(row) for row in csv.reader(io.StringIO(text))}) == 1


def test_a_piped_table_is_not_cut(rstar2, data):
    text = rstar2("sql", "SELECT repeat('x', 500) AS x FROM this LIMIT 1", data, "-f", "table")
    assert "x" * 500 in text


def test_count(rstar2, data):
    assert rstar2("count", data) == "12\n"
    assert rows(rstar2("count", data, "--by", "source, split")) == [
        {"source": "a", "split": "train", "count": 6},
        {"source": "b", "split": "train", "count": 6},
    ]
    rstar2("count", data, "--by", "nope", code=2)


def test_schema_of_kinds_and_inputs(rstar2, data):
    for name, cls in KINDS.items():
        fields = rows(rstar2("schema", name))
        assert {field["field"] for field in fields} >= set(cls.__struct_fields__)
        assert all(field["meaning"] for field in fields)
    assert rows(rstar2("schema", data))[0] == {"field": "kind", "type": "text", "meaning": "problem/1"}
    assert any(field["field"] == "turns.calls.outcome" for field in rows(rstar2("schema", "trajectory")))
    assert json.loads(rstar2("schema", "problem", "--json-schema"))["title"] == "Problem"


def test_stats_says_what_the_kind_is_looked_at_for(rstar2, data):
    assert rstar2("stats", data, "-f", "table").startswith("problem: rows 12, sources 2")
    found = rows(rstar2("stats", data))
    assert found[0] == {"column": "rows", "type": "figure", "mean": 12}
    assert any(row["column"] == "extra.split" for row in found)


def test_sql_names_its_views(rstar2, data):
    assert rows(rstar2("sql", "SELECT count(*) AS n FROM this", data)) == [{"n": 12}]
    assert rows(rstar2("sql", "SELECT count(*) AS n FROM this", f"this={data}")) == [{"n": 12}]
    query = "SELECT count(*) AS n FROM d JOIN e USING (id)"
    assert rows(rstar2("sql", query, f"d={data}", f"e={data}")) == [{"n": 12}]
    assert rows(rstar2("sql", "SELECT count(*) AS n FROM d", f"d={data}", f"d={data}")) == [{"n": 24}]
    rstar2("sql", query, data, data, code=2)
    assert "several inputs need names" in rstar2.err
    rstar2("sql", "SELECT nope FROM this", data, code=2)
    assert 'Referenced column "nope" not found' in rstar2.err
    rstar2("sql", "COPY this TO 'x.csv'", data, code=2)
    assert not os.path.exists("x.csv")


def test_validate_lists_faults_and_exits_with_3(rstar2, data, tmp_path):
    assert rstar2("validate", data) == ""
    assert "12 good problem/1 rows in 1 files, 1 manifests agree" in rstar2.err
    bad = encode_line(problem(1)).replace(b'"answer":"1"', b'"answer":12.5')
    (tmp_path / "a.jsonl").write_bytes(encode_line(problem(0)) + bad)
    found = rows(rstar2("validate", str(tmp_path / "a.jsonl"), code=3))
    assert (found[0]["line"], found[0]["reason"]) == (2, "expected string, got 12.5 at $.answer")
    assert "error: 1 faults; 1 good problem/1 rows in 1 files" in rstar2.err
    rstar2("validate", data, "--kind", "nothing", code=2)


@pytest.mark.parametrize("command", [["head"], ["count"], ["stats"], ["sql", "SELECT * FROM this"]])
def test_bad_rows_and_missing_inputs_have_their_codes(rstar2, tmp_path, command):
    rstar2(*command, str(tmp_path / "none"), code=4)
    assert rstar2.err.startswith(f"error: {tmp_path}/none: no such file or directory")
    bad = encode_line(problem(1)).replace(b'"answer":"1"', b'"answer":12.5')
    (tmp_path / "a.jsonl").write_bytes(encode_line(problem(0)) + bad)
    rstar2(*command, str(tmp_path / "a.jsonl"), code=3)
    assert f"error: {tmp_path}/a.jsonl:2: expected string, got 12.5 at $.answer" in rstar2.err
    assert f"hint: list all bad rows with: rstar2 validate {tmp_path}/a.jsonl" in rstar2.err
    (tmp_path / "b.jsonl").write_bytes(b"")
    rstar2(*command, str(tmp_path / "b.jsonl"), code=4)
    assert "no records in" in rstar2.err


def start(*arguments: str, **options) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-m", "rstar2cli", *arguments], **options)


def test_streams_chain(data):
    head = start("head", "-n", "5", data, stdout=subprocess.PIPE)
    stats = start("stats", "-", stdin=head.stdout, stdout=subprocess.PIPE, text=True)
    out, _ = stats.communicate(timeout=120)
    assert (head.wait(), stats.returncode) == (0, 0)
    assert json.loads(out.splitlines()[0])["mean"] == 5


def test_a_reader_that_leaves_ends_the_writer_quietly(data):
    query = "SELECT a.* FROM this a, range(100000)"
    process = start("sql", query, data, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=120) == 141
    assert process.stderr.read() == b""
    process.stderr.close()


def test_head_imports_only_what_it_reads_with(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(encode_line(problem(0)))
    probe = (
        "import sys\nfrom rstar2cli.cli.app import run\ncode = run(sys.argv[1:])\n"
        "heavy = {'pyarrow', 'duckdb', 'torch', 'numpy', 'rich'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\nsys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe, "head", str(tmp_path / "a.jsonl")], capture_output=True, text=True, check=True
    )
    assert done.stderr == "[]\n"


def test_validate_checks_all_that_a_run_keeps(tmp_path, capsys):
    rl = tmp_path / "rl"
    (rl / "selections").mkdir(parents=True)
    (rl / "run.json").write_text('{"default": "metrics.jsonl"}')
    (rl / "metrics.jsonl").write_bytes(encode_line(Metric(run="r", step=1, name="reward", value=0.5)))
    chosen = Selection(id="r:1:1/0", group="r:1:1", kept=False, advantage=None, why="equal_rewards")
    (rl / "selections" / "a.jsonl").write_bytes(encode_line(chosen))
    assert run(["validate", str(rl)]) == 0
    summary = "1 good metric/1 rows in 1 files; 1 good selection/1 rows in 1 files"
    assert capsys.readouterr().err.splitlines()[-1] == summary
    (rl / "rollouts").mkdir()
    (rl / "rollouts" / "a.jsonl").write_text("{\n")
    assert run(["validate", str(rl)]) == 3
    shown = capsys.readouterr()
    assert "rollouts/a.jsonl" in shown.out and "1 faults; 1 good metric/1 rows" in shown.err


@pytest.mark.parametrize("command", ["head", "show", "count", "stats", "validate", "sql"])
def test_a_directory_of_several_kinds_is_named_so(tmp_path, capsys, command):
    assert run(["curate", "synth:", "--limit", "2", "-o", str(tmp_path / "d" / "p"), "-q"]) == 0
    talks = ["curate", "synth:", "--limit", "1", "--as", "conversations", "-o", str(tmp_path / "d" / "c"), "-q"]
    assert run(talks) == 0
    query = ["select 1 from this"] if command == "sql" else []
    capsys.readouterr()
    assert run([command, *query, str(tmp_path / "d")]) == 2
    err = capsys.readouterr().err
    assert "holds several kinds of records (conversation: c; problem: p)" in err and "name one of them" in err
