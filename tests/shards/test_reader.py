"""Every way in: files, globs, directories, streams; filters, limits, rejects."""

from __future__ import annotations

import gzip
import io
import json
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from shard_helpers import ids, problems, write

from rstar2cli.core.errors import DataError, InputMissing, UsageError
from rstar2cli.records import Metric, Problem
from rstar2cli.records.codec import encode_line
from rstar2cli.shards import lines, parquet
from rstar2cli.shards.kinds import detect
from rstar2cli.shards.reader import read_records
from rstar2cli.shards.resolve import resolve

DATA = b"".join(map(encode_line, problems(3)))
WANTED = ["p0", "p1", "p2"]


@pytest.fixture
def stdin(monkeypatch):
    def give(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return give


@pytest.mark.parametrize(
    "data",
    [
        DATA,
        DATA.rstrip(b"\n"),
        DATA.replace(b"\n", b"\n\n"),
        gzip.compress(DATA),
        gzip.compress(DATA[:40]) + gzip.compress(DATA[40:]),
        zstandard.compress(DATA),
        zstandard.compress(DATA[:40]) + zstandard.compress(DATA[40:]),
    ],
    ids=["plain", "no-last-newline", "empty-lines", "gzip", "gzip-members", "zstd", "zstd-frames"],
)
def test_forms_are_known_by_their_bytes(tmp_path, stdin, data):
    (tmp_path / "any-name").write_bytes(data)
    assert ids(tmp_path / "any-name") == WANTED
    stdin(data)
    assert detect(["-"]) is Problem  # the look ahead loses nothing
    assert ids("-") == WANTED


def test_parquet_is_known_by_its_bytes(tmp_path):
    path = write(tmp_path / "a.parquet", problems(3))
    assert ids(path.rename(tmp_path / "odd-name")) == WANTED


def test_globs_and_several_inputs_in_order(tmp_path):
    write(tmp_path / "b.jsonl", problems(1, 1))
    write(tmp_path / "a.parquet", problems(1, 0))
    write(tmp_path / "d", problems(1, 2))
    assert ids(tmp_path / "?.*l", tmp_path / "a.parquet", tmp_path / "d") == ["p1", "p0", "p2"]
    assert ids(tmp_path / "a*", tmp_path / "d" / "part-*.parquet") == ["p0", "p2"]


def test_a_name_with_glob_signs_is_a_name_first(tmp_path):
    assert ids(write(tmp_path / "a[1].jsonl", problems(1))) == ["p0"]


def test_plain_directories_read_their_data_files_and_no_rejects(tmp_path):
    write(tmp_path / "b.jsonl.gz", problems(1, 1))
    write(tmp_path / "a.parquet", problems(1, 0))
    (tmp_path / "rejects.jsonl").write_text("{}\n")
    (tmp_path / "a.parquet.rejects.jsonl").write_text("{}\n")
    (tmp_path / "notes.txt").write_text("x")
    assert ids(tmp_path) == ["p0", "p1"]


def test_a_directory_of_shard_directories_is_read_whole_or_not_at_all(tmp_path):
    for step in (2, 1):
        write(tmp_path / f"step-{step:05d}", problems(1, step))
    (tmp_path / "notes").mkdir()
    assert ids(tmp_path) == ["p1", "p2"]
    third = tmp_path / "step-00003"
    third.mkdir()
    for name, data in (("part-00000.parquet", b"PAR1"), (".parts.json", b"{}"), ("config.json", b'{"stage": "eval"}')):
        (third / name).write_bytes(data)
        for where in (tmp_path, third, tmp_path / "step-*"):
            with pytest.raises(InputMissing, match=r"step-00003: no manifest\.json: its writer has not") as caught:
                ids(where)
            assert "--resume" in caught.value.hint
        (third / name).unlink()
    (third / "config.json").write_text('{"model_type": "qwen3"}')  # a model's
    assert ids(tmp_path) == ["p1", "p2"]


def test_a_run_directory_reads_its_default(tmp_path):
    (tmp_path / "run.json").write_text(json.dumps({"kind": "run/1", "default": "metrics.jsonl"}))
    (tmp_path / "metrics.jsonl").write_bytes(encode_line(Metric(run="r", step=1, name="loss", value=1.0)))
    assert detect([str(tmp_path)]) is Metric
    assert [metric.value for metric in read_records([str(tmp_path)], Metric)] == [1.0]


@pytest.mark.parametrize("form", ["d", "a.jsonl"])
def test_where_and_limit(tmp_path, form):
    path = write(tmp_path / form, problems(20))
    assert ids(path, limit=3) == WANTED
    assert ids(path, limit=0) == []
    assert ids(path, where="solved >= 7") == ["p7", "p8", "p16", "p17"]
    assert ids(path, where="solved >= 7", limit=2) == ["p7", "p8"]
    assert ids(path, where="extra->>'number' = '4' -- a comment") == ["p4"]
    assert ids(path, where="CAST(extra->>'number' AS INT) > 17 AND list_contains(tags, 'a')") == ["p18", "p19"]
    assert ids(path, where="solved IS NULL") == []


@pytest.mark.parametrize(
    "where",
    [
        "nope = 1",
        "solved >",
        "1) OR (1=1",
        "true); DROP TABLE x; --",
        "id = 1.5::DATE",
        "read_text('/etc/passwd') = ''",
    ],
)
def test_a_bad_expression_is_a_usage_error_even_for_no_rows(tmp_path, where):
    path = write(tmp_path / "d", problems(2))
    with pytest.raises(UsageError, match="--where"):
        ids(path, where=where)


def test_where_cannot_reach_files(tmp_path):
    path = write(tmp_path / "d", problems(2))
    (tmp_path / "other.csv").write_text("a\n1\n")
    with pytest.raises(UsageError):
        ids(path, where=f"EXISTS (FROM '{tmp_path}/other.csv')")


def test_an_expression_that_fails_on_a_value_says_so(tmp_path):
    path = write(tmp_path / "d", problems(2))
    with pytest.raises(UsageError, match="Could not convert"):
        ids(path, where="CAST(prompt AS INT) = 1")


def test_bad_rows_are_rejected_with_place_and_reason(tmp_path):
    rows = DATA.splitlines(keepends=True)
    rows[1] = rows[1].replace(b'"solved":1', b'"solved":"12.5"')
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(rows))
    rejects = []
    assert ids(tmp_path / "a.jsonl", on_reject=rejects.append) == ["p0", "p2"]
    assert str(rejects[0]) == f'{tmp_path}/a.jsonl:3: expected integer or null, got "12.5" at $.solved'
    assert rejects[0].raw.startswith('{"kind":"problem/1"')
    with pytest.raises(DataError, match=r'a\.jsonl:3: expected integer or null, got "12\.5" at \$\.solved'):
        ids(tmp_path / "a.jsonl")


def test_unknown_fields_are_told_once_a_file(tmp_path):
    rows = [
        json.dumps({"kind": "problem/1", "id": str(n), "source": "", "prompt": "", "answer": "", "x": n})
        for n in range(5)
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(rows))
    told = []
    found = list(read_records([str(tmp_path / "a.jsonl")], Problem, on_unknown=lambda *what: told.append(what)))
    assert told == [(str(tmp_path / "a.jsonl"), "x")]
    assert [problem.extra for problem in found] == [{"x": n} for n in range(5)]
    rejects = []
    assert ids(tmp_path / "a.jsonl", strict=True, on_reject=rejects.append) == []
    assert len(rejects) == 5


def test_parquet_of_others_is_read_by_its_columns(tmp_path):
    table = pa.table(
        {"id": ["a", "b"], "source": ["s", "s"], "prompt": ["p", None], "answer": ["1", "2"], "level": pa.array([3, 4])}
    )
    pq.write_table(table, tmp_path / "a.parquet")
    rejects = []
    found = list(read_records([str(tmp_path / "a.parquet")], Problem, on_reject=rejects.append))
    assert [(problem.id, problem.extra) for problem in found] == [("a", {"level": 3})]
    assert str(rejects[0]) == f"{tmp_path}/a.parquet:2: expected string, got null at $.prompt"
    assert ids(tmp_path / "a.parquet", where="answer = '1'") == ["a"]


def test_long_lines_are_rejected_without_being_held(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 4096)
    rows = [
        encode_line(problems(1)[0]),
        b'{"kind":"problem/1","id":"' + b"x" * 5000 + b'"}\n',
        *DATA.splitlines(True)[1:],
    ]
    (tmp_path / "a.jsonl").write_bytes(b"".join(rows))
    found = list(lines.read_lines(lines.open_file(tmp_path / "a.jsonl"), "a"))
    assert [(line.number, line.too_long) for line in found] == [(1, 0), (2, len(rows[1]) - 1), (3, 0), (4, 0)]
    assert max(len(line.data) for line in found) <= 4096


def test_an_empty_input_is_missing_not_nothing(tmp_path, stdin):
    (tmp_path / "a.jsonl").write_bytes(b"\n\n")
    with pytest.raises(InputMissing, match=r"no records in .*a\.jsonl"):
        ids(tmp_path / "a.jsonl")
    assert ids(tmp_path / "a.jsonl", empty_ok=True) == []
    with pytest.raises(InputMissing, match="no records"):
        ids(write(tmp_path / "d", []))
    stdin(b"")
    with pytest.raises(InputMissing, match="no records in -"):
        ids("-")
    stdin(b"")
    with pytest.raises(InputMissing, match="no records in -"):
        detect(["-"])


def test_the_wrong_kind_is_told_by_row_or_file(tmp_path):
    path = write(tmp_path / "d", problems(1))
    with pytest.raises(DataError, match=r"part-00000\.parquet: expected a metric, got a problem"):
        next(read_records([str(path)], Metric))
    (tmp_path / "a.jsonl").write_bytes(DATA)
    with pytest.raises(DataError, match=r"a\.jsonl:1: expected a metric, got a problem"):
        next(read_records([str(tmp_path / "a.jsonl")], Metric))


def test_standard_input_can_be_named_once():
    with pytest.raises(InputMissing, match="only once"):
        resolve(["-", "-"])


def test_long_rows_are_decoded_few_at_once(tmp_path, monkeypatch):
    path = write(tmp_path / "a.parquet", problems(100))
    monkeypatch.setattr(parquet, "READ_BYTES", 1000)
    sizes = [batch.num_rows for batch in parquet.batches(path)]
    assert sum(sizes) == 100
    assert max(sizes) < 50
