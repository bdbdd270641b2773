"""Validation finds every fault and goes on after each."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from records_samples import problem, trajectory
from shard_helpers import problems, write

from rstar2cli.core.errors import InputMissing, UsageError
from rstar2cli.records import Problem, Trajectory
from rstar2cli.records.codec import encode_line
from rstar2cli.shards.validate import validate


def faults(*inputs, **options):
    found = []
    report = validate([str(name) for name in inputs], found.append, **options)
    assert report.faults == len(found)
    return report, [str(fault).rsplit("/", 1)[-1] for fault in found]


def test_good_directories_are_verified_against_their_manifests(tmp_path):
    write(tmp_path / "d", problems(5), rows_per_part=2)
    report, found = faults(tmp_path / "d")
    assert found == []
    assert (report.record, report.files, report.rows, report.verified) == ("problem/1", 3, 5, 1)
    assert faults(tmp_path / "d" / "part-00001.parquet")[0].verified == 0


def test_every_bad_row_of_every_file(tmp_path):
    rows = list(map(encode_line, problems(4)))
    (tmp_path / "a.jsonl").write_bytes(b"{\n" + rows[0] + rows[1].replace(b'"answer":"1"', b'"answer":1'))
    (tmp_path / "b.jsonl").write_bytes(rows[2] + b"[]\n" + rows[3])
    report, found = faults(tmp_path / "b.jsonl", tmp_path / "a.jsonl", cls=Problem)
    assert found == [
        "b.jsonl:2: expected object, got []",
        "a.jsonl:1: not JSON: input data was truncated",
        "a.jsonl:3: expected string, got 1 at $.answer",
    ]
    assert report.rows == 3


@pytest.mark.parametrize("bad", [b"{\n", b"[]\n", b'{"x":1}\n', b'"' + b"x" * (20 << 20) + b'"\n'])
def test_a_bad_first_row_is_one_fault_among_all(tmp_path, bad):
    rows = list(map(encode_line, problems(2)))
    (tmp_path / "a.jsonl").write_bytes(b"\n" + bad + rows[0] + b"{\n" + rows[1])
    (tmp_path / "b.jsonl").write_bytes(bad)
    found = []
    report = validate([str(tmp_path / "b.jsonl"), str(tmp_path / "a.jsonl")], found.append)
    assert [(fault.file[-7:], fault.line) for fault in found] == [("b.jsonl", 1), ("a.jsonl", 2), ("a.jsonl", 4)]
    assert (report.record, report.rows) == ("problem/1", 2)
    report, (fault,) = faults(tmp_path / "b.jsonl")
    assert re.match(r"b\.jsonl:1: (not JSON|no \"kind\"|line of more than 16 MiB)", fault)
    assert (report.record, report.rows) == ("", 0)


def test_damaged_files_do_not_end_the_search(tmp_path):
    path = write(tmp_path / "d", problems(6), rows_per_part=2)
    part = path / "part-00001.parquet"
    part.write_bytes(part.read_bytes()[:50])
    report, found = faults(path)
    assert report.rows == 4
    assert found[0].startswith("part-00001.parquet:0: damaged or cut-off Parquet file")
    assert len(found) == 1, "what its manifest promises is no second fault"


def test_changed_data_disagree_with_the_manifest(tmp_path):
    path = write(tmp_path / "d", problems(2))
    other = write(tmp_path / "e", [problem(0), problem(7)])
    (other / "part-00000.parquet").replace(path / "part-00000.parquet")
    _, found = faults(path)
    assert len(found) == 1
    assert "manifest.json:0: promises 2 rows with digest" in found[0]


def test_unknown_fields_are_named_and_strictly_refused(tmp_path):
    row = encode_line(problem(0)).replace(b'"tags":', b'"labels":')
    (tmp_path / "a.jsonl").write_bytes(row * 2)
    assert faults(tmp_path / "a.jsonl")[0].unknown == {"labels": 1}
    assert faults(tmp_path / "a.jsonl", strict=True)[1] == [
        f'a.jsonl:{n}: unknown field "labels" at $ (--strict)' for n in (1, 2)
    ]


def test_a_newer_version_is_a_fault_of_the_file(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(encode_line(problem(0)).replace(b"problem/1", b"problem/2"))
    _, found = faults(tmp_path / "a.jsonl", cls=Problem)
    assert "2 was written by a newer rstar2" in found[0]


def test_every_row_of_a_foreign_file_is_listed(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"q": 1}\n{"kind": "poem"}\n\n[]\n')
    pq.write_table(pa.table({"q": [1]}), tmp_path / "b.parquet")
    report, found = faults(tmp_path / "a.jsonl", tmp_path / "b.parquet")
    assert [fault.partition(": ")[0] for fault in found] == ["a.jsonl:1", "a.jsonl:2", "a.jsonl:4", "b.parquet:0"]
    assert "unknown kind of record 'poem'" in found[1] and "no kind in its footer" in found[3]
    assert (report.record, report.files) == ("", 2)


def test_a_directory_of_several_kinds_is_not_one_input(tmp_path):
    write(tmp_path / "d" / "a", problems(2))
    write(tmp_path / "d" / "b", problems(2))
    assert faults(tmp_path / "d")[0].rows == 4
    write(tmp_path / "d" / "c", [trajectory(0)], Trajectory)
    with pytest.raises(UsageError, match=r"several kinds of records \(problem: a, b; trajectory: c\)") as caught:
        faults(tmp_path / "d")
    assert str(tmp_path / "d" / "a") in caught.value.hint


def test_missing_inputs_are_not_faults(tmp_path):
    with pytest.raises(InputMissing):
        faults(tmp_path / "none")
