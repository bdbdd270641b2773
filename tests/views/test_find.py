"""The record that ``show`` is asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from rstar2cli.core.errors import InputMissing, UsageError
from rstar2cli.records import Problem, Record, Score, Selection, Trajectory
from rstar2cli.views.find import find_record, readable, selection_of, trajectory_of


def write(path: Path, records: list[Record]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(msgspec.json.encode(record) + b"\n" for record in records))
    return str(path)


@pytest.fixture
def problems(tmp_path: Path) -> str:
    names = ["2", "ab-1", "ab-2", "c"]
    return write(tmp_path / "p.jsonl", [Problem(id=name, source="s", prompt="?", answer="1") for name in names])


@pytest.mark.parametrize(("wanted", "found"), [(None, "2"), ("c", "c"), ("ab-2", "ab-2"), ("2", "2"), ("3", "ab-2")])
def test_by_id_or_row_number(problems: str, wanted: str | None, found: str) -> None:
    assert find_record(problems, wanted).id == found  # type: ignore[attr-defined]


def test_ambiguous_and_absent_ids_are_told(problems: str) -> None:
    with pytest.raises(UsageError, match="ab-1, ab-2"):
        find_record(problems, "ab")
    with pytest.raises(InputMissing, match="'zz' among 4"):
        find_record(problems, "zz")


def test_selection_of_a_run_is_found(tmp_path: Path, make_trajectory: Callable[..., Trajectory]) -> None:
    record = make_trajectory(step=2, id="r:2:0/0")
    step = tmp_path / "rollouts" / "step-00002" / "part.jsonl"
    write(step, [record])
    (tmp_path / "run.json").write_text('{"kind": "run/1", "default": "metrics.jsonl"}')
    chosen = Selection(id=record.id, group="r:2:0", kept=True, advantage=0.5, why="kept")
    write(tmp_path / "selections" / "step-00002" / "part.jsonl", [chosen])
    for source in (str(tmp_path), readable(str(tmp_path)), str(step.parent), str(step)):
        assert selection_of(source, record) == chosen
    assert selection_of(str(step), make_trajectory(step=3)) is None


def test_score_leads_to_its_trajectory(tmp_path: Path, make_trajectory: Callable[..., Trajectory]) -> None:
    score = Score(benchmark="b", problem_id="p1", sample=0, metric="correct", value=1.0, trajectory_id="r:0:0/0")
    write(tmp_path / "part.jsonl", [score])
    write(tmp_path / "trajectories" / "part.jsonl", [make_trajectory()])
    found = trajectory_of(str(tmp_path), score)
    assert found is not None and found.id == "r:0:0/0"
    assert find_record(str(tmp_path / "part.jsonl"), "p1") == score
