"""Problems from files, streams, shards and sets: all rows are used, rejected with a reason, or filtered."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rstar2cli.core.config import Layer, resolve
from rstar2cli.core.errors import DataError, InputMissing, UsageError
from rstar2cli.curation.config import CurateConfig
from rstar2cli.curation.problems import read_problems
from rstar2cli.records.codec import encode_line
from rstar2cli.shards.rejects import Reject

ROWS = [
    {"question": "What is 1 + 1?", "answer": "so it is\n#### 2"},
    {"question": "What is a half?", "answer": "1/2"},
    {"question": " what IS  1 + 1?", "answer": "2"},
    {"question": "What is 6 * 7?", "answer": "42"},
]


def read(*inputs, limit=None, where=None, seed=0, **values):
    rejects = []
    config = resolve(CurateConfig, [Layer(origin="test", values=values)])
    problems = read_problems(list(inputs), config, seed=seed, limit=limit, where=where, on_reject=rejects.append)
    return list(problems), [(reject.line, reject.reason) for reject in rejects]


@pytest.fixture
def jsonl(tmp_path):
    path = tmp_path / "raw.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def test_jsonl_rows_are_used_or_rejected(jsonl):
    problems, rejects = read(str(jsonl))
    assert [(p.id, p.answer) for p in problems] == [("raw/1", "2"), ("raw/4", "42")]
    assert rejects == [(2, "the answer is no integer: '1/2'"), (3, f"the same problem as {jsonl}:1")]


def test_duplicates_can_be_kept_and_are_found_over_several_inputs(jsonl, tmp_path):
    assert len(read(str(jsonl), duplicates="keep")[0]) == 3
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(jsonl.read_bytes())
    problems, rejects = read(str(jsonl), str(copy))
    assert len(problems) == 2
    assert len(rejects) == 6


def test_files_of_one_name_give_distinct_ids(tmp_path):
    paths = [tmp_path / "a" / "test.jsonl", tmp_path / "b" / "test.jsonl", tmp_path / "b" / "test.jsonl.gz"]
    for number, path in enumerate(paths):
        path.parent.mkdir(exist_ok=True)
        row = json.dumps({"question": f"What is 1 + {number}?", "answer": str(number + 1)}).encode()
        path.write_bytes(gzip.compress(row) if path.suffix == ".gz" else row)
    problems, rejects = read(*map(str, paths))
    deeper = f"{tmp_path.name}/b/test"
    assert [(p.id, p.source) for p in problems] == [
        ("test/1", "test"),
        ("b/test/1", "b/test"),
        (f"{deeper}/1", deeper),
    ]
    assert rejects == []


@pytest.mark.parametrize("duplicates", ["keep", "reject"])
def test_an_id_names_one_problem(tmp_path, duplicates):
    path = tmp_path / "raw.jsonl"
    rows = [{"id": "x", "question": f"What is 1 + {number}?", "answer": str(number + 1)} for number in range(2)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    problems, rejects = read(str(path), duplicates=duplicates)
    assert [p.id for p in problems] == ["raw/x"]
    assert rejects == [(2, f"the id 'raw/x' is that of {path}:1 too")]
    assert [len(found) for found in read(str(path), str(path), duplicates=duplicates)] == [1, 3]


def test_lines_that_are_no_objects_are_rejected(tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_text('{"question": "q", "answer": "1"}\n{"question": \n[1]\n\n"text"\n')
    problems, rejects = read(str(path))
    assert len(problems) == 1
    assert [line for line, _ in rejects] == [2, 3, 5]
    assert rejects[0][1].startswith("not JSON")
    assert rejects[1][1] == "expected object"


def test_parquet_and_gzip_give_the_same_problems(jsonl, tmp_path):
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "raw.parquet")
    (tmp_path / "raw.jsonl.gz").write_bytes(gzip.compress(jsonl.read_bytes()))
    expected = [(p.id, p.prompt, p.answer) for p in read(str(jsonl))[0]]
    for name in ("raw.parquet", "raw.jsonl.gz"):
        assert [(p.id, p.prompt, p.answer) for p in read(str(tmp_path / name))[0]] == expected


def test_a_damaged_parquet_file_is_an_error(tmp_path):
    path = tmp_path / "cut.parquet"
    pq.write_table(pa.Table.from_pylist(ROWS), path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match="damaged or cut-off"):
        read(str(path))


def test_missing_inputs_and_unknown_families_are_errors(tmp_path):
    with pytest.raises(InputMissing, match="no such file"):
        read(str(tmp_path / "none.jsonl"))
    with pytest.raises(UsageError, match="did you mean 'coins'"):
        read("synth:coin", limit=1)


def test_generated_problems_come_back_from_a_file_on_their_side_of_the_split(tmp_path):
    made, _ = read("synth:", limit=80)
    path = tmp_path / "problems.jsonl"
    path.write_bytes(b"".join(encode_line(problem) for problem in made))
    train, _ = read(str(path), split="train")
    heldout, _ = read(str(path), split="heldout")
    assert sorted(p.id for p in train + heldout) == sorted(p.id for p in made)
    assert {p.extra["split"] for p in heldout} == {"heldout"}
    assert read(str(path))[0] == made


def test_foreign_problems_are_split_by_prompt(tmp_path):
    path = tmp_path / "many.jsonl"
    path.write_text("".join(json.dumps({"question": f"What is {n} + 1?", "answer": n + 1}) + "\n" for n in range(500)))
    train = {p.prompt for p in read(str(path), split="train")[0]}
    heldout = {p.prompt for p in read(str(path), split="heldout")[0]}
    assert len(train) + len(heldout) == 500
    assert 0.14 < len(heldout) / 500 < 0.26


def test_synth_names_families_and_count(tmp_path):
    assert {p.extra["family"] for p in read("synth:coins,gcd_lcm", limit=10)[0]} == {"coins", "gcd_lcm"}
    assert len(read("synth:", count=30)[0]) == 30
    assert {p.extra["family"] for p in read("synth:", limit=4, families="triangles")[0]} == {"triangles"}


def test_naming_the_generator_twice_repeats_no_parameters():
    problems, _ = read("synth:", "synth:", count=60)
    assert len({p.id.rsplit(".", 1)[0] for p in problems}) == len(problems) == 120


def test_where_filters_and_limit_counts_what_passes(jsonl):
    problems, _ = read("synth:", limit=5, where="list_contains(tags, 'dates')")
    assert len(problems) == 5
    assert {p.tags[0] for p in problems} == {"dates"}
    assert [p.answer for p in read(str(jsonl), where="answer > '2'")[0]] == ["42"]
    with pytest.raises(UsageError, match="--where"):
        read(str(jsonl), where="nonsense = 1")


def test_a_set_is_loaded_from_a_local_directory(jsonl):
    datasets = pytest.importorskip("datasets")
    datasets.config.HF_DATASETS_CACHE = jsonl.parent / "cache"
    jsonl.rename(jsonl.parent / "train.jsonl")
    name = f"hf:{jsonl.parent}"
    problems, rejects = read(name, split="all")
    assert [p.answer for p in problems] == ["2", "42"]
    assert problems[0].source == name
    assert [line for line, _ in rejects] == [2, 3]


def test_a_set_that_is_not_there_is_missing(tmp_path):
    pytest.importorskip("datasets")
    with pytest.raises(InputMissing, match="hf:"):
        read(f"hf:{tmp_path}/none")
    (tmp_path / "train.jsonl").write_text('{"question": "q", "answer": "1"}\n')
    with pytest.raises(InputMissing, match="nosuch"):
        read(f"hf:{tmp_path}:nosuch")


def test_golds_that_could_only_be_undecided_are_rejected(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(
        '{"question": "a", "answer": "concave up on $(0,1)$, then down"}\n'
        '{"question": "b", "answer": "\\\\frac{\\\\sqrt{2}}{2}"}\n'
        '{"question": "c", "answer": "\\\\frac{1}{2"}\n'
    )
    rejects: list[Reject] = []
    config = CurateConfig(answer_kind="any")
    kept = list(read_problems([str(file)], config, seed=0, limit=None, on_reject=rejects.append))
    assert [(problem.answer, problem.answer_kind) for problem in kept] == [(r"\frac{\sqrt{2}}{2}", "expression")]
    assert [reject.line for reject in rejects] == [1, 3]
    assert "can't be graded (unparseable): 'concave up" in rejects[0].reason
    assert "(extraction)" in rejects[1].reason
    config = CurateConfig(answer_kind="any", golds="any")
    assert len(list(read_problems([str(file)], config, seed=0, limit=None, on_reject=rejects.append))) == 3
