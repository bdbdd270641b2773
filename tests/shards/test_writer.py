"""Outputs appear whole, hold what they promise, and say where they come from."""

from __future__ import annotations

import gzip
import json

import msgspec
import pyarrow.parquet as pq
import pytest
from records_samples import samples, trajectory
from shard_helpers import LINEAGE, ids, names, problems, write, writer

from rstar2cli.core.errors import DataError, OutputConflict, Stopped, UsageError
from rstar2cli.records import Problem, Trajectory
from rstar2cli.shards.digest import data_digest
from rstar2cli.shards.lineage import Lineage, code_version, input_digests, make_lineage
from rstar2cli.shards.manifest import read_config, read_journal, read_manifest
from rstar2cli.shards.reader import read_records
from rstar2cli.shards.rejects import Reject
from rstar2cli.shards.writer import config_differences

OUTS = ["dir", "a.parquet", "a.jsonl", "a.jsonl.gz", "a.jsonl.zst"]


@pytest.mark.parametrize("out", OUTS)
@pytest.mark.parametrize("record", samples(), ids=lambda record: type(record).record_name)
def test_every_kind_in_every_form(tmp_path, out, record):
    cls = type(record)
    path = write(tmp_path / out, [record] * 3, cls, rows_per_part=2)
    back = list(read_records([str(path)], cls))
    if isinstance(record, Trajectory):
        for item in back:
            item.logprobs = record.logprobs
    assert back == [record] * 3


def test_layout_of_a_directory(tmp_path):
    path = write(tmp_path / "d", problems(5), rows_per_part=2)
    assert names(path) == {
        "part-00000.parquet",
        "part-00001.parquet",
        "part-00002.parquet",
        "manifest.json",
        "config.json",
    }
    manifest = read_manifest(path)
    assert [part.rows for part in manifest.parts] == [2, 2, 1]
    assert (manifest.rows, manifest.record, manifest.lineage) == (5, "problem/1", LINEAGE)
    assert read_config(path) == {"a": {"b": 1}, "model_digest": "m", "data": {"in": "0"}}


def test_footer_says_kind_lineage_and_digest(tmp_path):
    path = write(tmp_path / "d", problems(3))
    meta = pq.read_metadata(path / "part-00000.parquet")
    assert meta.metadata[b"rstar2.kind"] == b"problem/1"
    assert msgspec.json.decode(meta.metadata[b"rstar2.lineage"], type=Lineage) == LINEAGE
    assert meta.metadata[b"rstar2.digest"].decode() == read_manifest(path).parts[0].digest
    assert meta.row_group(0).column(0).compression == "ZSTD"


def test_row_groups_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr("rstar2cli.shards.part.ROW_GROUP_ROWS", 4)
    path = write(tmp_path / "d", problems(10))
    meta = pq.read_metadata(path / "part-00000.parquet")
    assert [meta.row_group(i).num_rows for i in range(meta.num_row_groups)] == [4, 4, 2]
    monkeypatch.setattr("rstar2cli.shards.part.ROW_GROUP_BYTES", 1)
    path = write(tmp_path / "e", problems(3))
    assert pq.read_metadata(path / "part-00000.parquet").num_row_groups == 3


def test_same_data_same_digest_whatever_the_form(tmp_path):
    records = [trajectory(number) for number in range(7)]
    paths = [write(tmp_path / out, records, Trajectory, rows_per_part=3) for out in OUTS]
    paths.append(write(tmp_path / "other-parts", records, Trajectory, rows_per_part=2))
    digests = {data_digest([str(path)]) for path in paths}
    assert digests == {read_manifest(tmp_path / "dir").digest} == {read_manifest(tmp_path / "other-parts").digest}


def test_digest_leaves_out_seconds_and_sees_everything_else(tmp_path):
    def digest(name: str, *records: Trajectory) -> str:
        return data_digest([str(write(tmp_path / name, records, Trajectory))])

    base = digest("a", trajectory(0), trajectory(1))
    slower = trajectory(0)
    slower.timings = {"total": 99.0}
    slower.turns[0].calls[0].seconds = 42.0
    assert digest("b", slower, trajectory(1)) == base
    assert digest("c", trajectory(1), trajectory(0)) != base
    changed = trajectory(0)
    changed.turns[0].calls[0].output = "2"
    assert digest("d", changed, trajectory(1)) != base
    changed = trajectory(0)
    changed.logprobs[0] = -0.1000001
    assert digest("e", changed, trajectory(1)) != base


@pytest.mark.parametrize("out", OUTS)
def test_an_exception_leaves_nothing_under_a_final_name(tmp_path, out):
    with pytest.raises(RuntimeError), writer(tmp_path / out, rows_per_part=100) as open_one:
        for record in problems(10):
            open_one.write(record)
        raise RuntimeError
    path = tmp_path / out
    assert names(path) == set() if path.is_dir() else names(tmp_path) == set()


def test_a_start_that_failed_does_not_block_the_next(tmp_path):
    with pytest.raises(RuntimeError), writer(tmp_path / "d"):
        raise RuntimeError("a mistyped model")
    path = write(tmp_path / "d", problems(2))
    assert ids(path) == [problem.id for problem in problems(2)]


def test_an_exception_keeps_finished_parts_but_writes_no_manifest(tmp_path):
    with pytest.raises(RuntimeError), writer(tmp_path / "d", rows_per_part=2) as open_one:
        for record in problems(5):
            open_one.write(record)
        raise RuntimeError
    assert read_manifest(tmp_path / "d") is None
    assert [part.rows for part in read_journal(tmp_path / "d").parts] == [2, 2]
    with writer(tmp_path / "d", rows_per_part=2, resume=True) as open_one:
        assert open_one.rows_done == 4
        assert open_one.existing("id") == {"p0", "p1", "p2", "p3"}
        open_one.write(problems(1, 4)[0])
    assert ids(tmp_path / "d") == ["p0", "p1", "p2", "p3", "p4"]
    assert not (tmp_path / "d" / ".parts.json").exists()


def test_a_drained_writer_keeps_all_rows_and_resumes_to_the_same_parts(tmp_path):
    whole = read_manifest(write(tmp_path / "whole", problems(7), rows_per_part=3))
    with pytest.raises(Stopped), writer(tmp_path / "d", rows_per_part=3) as open_one:
        for record in problems(5):
            open_one.write(record)
        raise Stopped("stopped")
    with writer(tmp_path / "d", rows_per_part=3, resume=True) as open_one:
        assert open_one.rows_done == 5
        assert open_one.existing("id") == {f"p{n}" for n in range(5)}
        for record in problems(2, 5):
            open_one.write(record)
    resumed = read_manifest(tmp_path / "d")
    assert resumed.parts == whole.parts
    assert resumed.digest == whole.digest


def test_a_drained_writer_that_resumes_with_nothing_more(tmp_path):
    with pytest.raises(Stopped), writer(tmp_path / "d", rows_per_part=3) as open_one:
        open_one.write(problems(1)[0])
        raise Stopped("stopped")
    with pytest.raises(Stopped), writer(tmp_path / "d", rows_per_part=3, resume=True):
        raise Stopped("stopped again before anything was done")
    with writer(tmp_path / "d", rows_per_part=3, resume=True) as open_one:
        assert open_one.rows_done == 1
    assert ids(tmp_path / "d") == ["p0"]


def test_end_part_makes_rows_durable(tmp_path):
    with pytest.raises(RuntimeError), writer(tmp_path / "d") as open_one:
        open_one.write(problems(1)[0])
        open_one.end_part()
        open_one.end_part()
        open_one.write(problems(2)[1])
        raise RuntimeError
    with writer(tmp_path / "d", resume=True) as open_one:
        assert open_one.rows_done == 1


def test_resuming_a_complete_output_is_nothing_to_do(tmp_path):
    path = write(tmp_path / "d", problems(3))
    before = (path / "manifest.json").read_bytes()
    with writer(path, resume=True) as open_one:
        assert open_one.complete
        assert open_one.rows_done == 3
        with pytest.raises(OutputConflict, match="complete"):
            open_one.write(problems(1)[0])
    assert (path / "manifest.json").read_bytes() == before
    single = write(tmp_path / "a.jsonl", problems(3))
    with writer(single, resume=True) as open_one:
        assert (open_one.complete, open_one.rows_done) == (True, 3)
        assert open_one.existing("id") == {"p0", "p1", "p2"}


def test_resume_with_another_configuration_names_the_keys(tmp_path):
    path = write(tmp_path / "d", problems(1))
    with pytest.raises(OutputConflict, match=r"another configuration: a\.b: 1 → 2"):
        writer(path, resume=True, config={"a": {"b": 2}})
    with pytest.raises(OutputConflict, match="holds problem/1 records, not trajectory/1"):
        writer(path, Trajectory, resume=True)
    assert config_differences({"a": 1, "b": 2}, {"b": 2, "c": None}) == ["a: 1 → None"]


@pytest.mark.parametrize("out", OUTS)
@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"model": "n"}, "another model: model_digest: 'm' → 'n'"),
        ({"inputs": {"in": "1"}}, r"another input: data\.in: '0' → '1'"),
        ({"inputs": {"in": "1"}, "model": "n"}, "another input and another model: "),
    ],
)
def test_resume_with_another_model_or_input_is_refused(tmp_path, out, other, named):
    path = write(tmp_path / out, problems(1))
    with pytest.raises(OutputConflict, match=named):
        writer(path, resume=True, lineage=msgspec.structs.replace(LINEAGE, **other))
    with writer(path, resume=True, lineage=msgspec.structs.replace(LINEAGE, command=["x"])) as open_one:
        assert open_one.complete
    with pytest.raises(OutputConflict, match=r"another configuration: a\.b: 1 → 2"):
        writer(path, resume=True, config={"a": {"b": 2}})


def test_a_file_from_elsewhere_is_not_taken_for_a_complete_output(tmp_path):
    path = write(tmp_path / "a.jsonl", problems(1))
    (tmp_path / "a.jsonl.config.json").unlink()
    with pytest.raises(OutputConflict, match=r"a\.jsonl\.config\.json is not beside it"):
        writer(path, resume=True)
    write(path, problems(2), overwrite=True)
    path.write_text("{}\n")
    for _ in range(2):  # the lock was given back
        with pytest.raises(DataError, match=r"a\.jsonl:1"):
            writer(path, resume=True)
    assert names(tmp_path) == {"a.jsonl", "a.jsonl.config.json"}


@pytest.mark.parametrize("out", OUTS)
def test_overwrite_spares_the_old_until_the_first_record(tmp_path, out):
    path = write(tmp_path / out, problems(3))
    reject = Reject(file="in", line=1, reason="bad")
    before = {name: (tmp_path / name).read_bytes() for name in names(tmp_path) if (tmp_path / name).is_file()}
    inside = names(path) if path.is_dir() else set()
    with pytest.raises(RuntimeError), writer(path, overwrite=True) as open_one:
        open_one.reject(reject)
        raise RuntimeError("no such model")
    assert ids(path) == ["p0", "p1", "p2"]
    assert {name: (tmp_path / name).read_bytes() for name in names(tmp_path) if name in before} == before
    assert (names(path) if path.is_dir() else set()) == inside


@pytest.mark.parametrize("out", OUTS)
def test_a_start_that_failed_leaves_nothing(tmp_path, out):
    with pytest.raises(RuntimeError), writer(tmp_path / out) as open_one:
        open_one.reject(Reject(file="in", line=1, reason="bad"))
        raise RuntimeError("no such model")
    with pytest.raises(RuntimeError), writer(tmp_path / out) as open_one:
        open_one.begin()
        raise RuntimeError("nothing came of it")
    assert names(tmp_path) == set()


@pytest.mark.parametrize("out", OUTS)
def test_an_output_that_exists_is_refused_naming_both_ways_out(tmp_path, out):
    path = write(tmp_path / out, problems(1))
    with pytest.raises(OutputConflict, match="exists") as caught:
        writer(path)
    assert "--resume" in caught.value.hint
    assert "--overwrite" in caught.value.hint
    write(path, problems(2), overwrite=True)
    assert ids(path) == ["p0", "p1"]


def test_overwrite_removes_our_files_and_no_others(tmp_path):
    path = write(tmp_path / "d", problems(6), rows_per_part=2)
    (path / "notes.txt").write_text("mine")
    write(path, problems(1), overwrite=True)
    assert names(path) == {"part-00000.parquet", "manifest.json", "config.json", "notes.txt"}


def test_an_empty_directory_may_be_written_to(tmp_path):
    (tmp_path / "d").mkdir()
    assert ids(write(tmp_path / "d", problems(1))) == ["p0"]


def test_an_output_without_records_is_complete(tmp_path):
    path = write(tmp_path / "d", [])
    assert read_manifest(path).rows == 0
    assert names(path) == {"manifest.json", "config.json"}


def test_rejects_are_kept_beside_the_output(tmp_path):
    reject = Reject(file="in.jsonl", line=7, reason="bad", raw="{")
    for out, rejects in (("d", "d/rejects.jsonl"), ("a.jsonl", "a.jsonl.rejects.jsonl")):
        with writer(tmp_path / out) as open_one:
            open_one.write(problems(1)[0])
            open_one.reject(reject)
        rows = [json.loads(line) for line in (tmp_path / rejects).read_text().splitlines()]
        assert rows == [{"file": "in.jsonl", "line": 7, "reason": "bad", "raw": "{"}]
        assert ids(tmp_path / out) == ["p0"]
    assert read_manifest(tmp_path / "d").rejects == 1


def test_rejects_of_a_stream_go_where_asked(tmp_path, capfdbinary, monkeypatch):
    with writer("-", rejects=str(tmp_path / "r.jsonl")) as open_one:
        open_one.reject(Reject(file="-", line=1, reason="bad"))
    assert (tmp_path / "r.jsonl").exists()
    with writer("-") as open_one:
        for number in range(5):
            open_one.reject(Reject(file="-", line=number, reason="bad"))
        assert open_one.n_rejects == 5


def test_compressed_jsonl_has_no_time_in_it(tmp_path):
    one = write(tmp_path / "a.jsonl.gz", problems(3)).read_bytes()
    assert gzip.decompress(one).count(b"\n") == 3
    assert one[4:8] == b"\0\0\0\0"


@pytest.mark.parametrize("out", ["a.csv", "a.json", "a.gz"])
def test_unknown_endings_are_refused(tmp_path, out):
    with pytest.raises(UsageError, match="no known ending"):
        writer(tmp_path / out)


def test_impossible_options(tmp_path):
    with pytest.raises(UsageError):
        writer(tmp_path / "d", resume=True, overwrite=True)
    with pytest.raises(UsageError):
        writer(tmp_path / "d", rows_per_part=0)


def test_lineage_digests_inputs(tmp_path):
    path = write(tmp_path / "d", problems(2))
    single = write(tmp_path / "a.jsonl", problems(2))
    digests = input_digests([str(path), str(single), "-", "synth:"])
    assert digests[str(path)] == read_manifest(path).digest
    assert len(digests[str(single)]) == 64
    assert (digests["-"], digests["synth:"]) == ("stream", "builtin")
    made = make_lineage(command=["rstar2"], config={}, inputs=[str(path)], model=None, seed=None)
    assert (made.code, made.inputs) == (code_version(), {str(path): digests[str(path)]})


def test_a_second_close_does_nothing(tmp_path):
    open_one = writer(tmp_path / "d", Problem)
    open_one.close()
    open_one.close()
    assert read_manifest(tmp_path / "d").rows == 0
