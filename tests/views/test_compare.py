"""Comparisons of hand-made evaluations."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from rstar2cli.core.errors import DataError, InputMissing, UsageError
from rstar2cli.records import Metric, Record, Score, Trajectory
from rstar2cli.views.compare import compare, read_side, write_comparison
from rstar2cli.views.comparison import draw


def write(path: Path, records: list[Record]) -> str:
    path.mkdir(parents=True, exist_ok=True)
    (path / "part.jsonl").write_bytes(b"".join(msgspec.json.encode(record) + b"\n" for record in records))
    return str(path)


def scores(values: dict[str, list[float | None]]) -> list[Record]:
    return [
        Score(benchmark="b", problem_id=problem, sample=sample, metric="correct", value=value,
              verdict="undecided" if value is None else "correct" if value else "wrong",
              detail={"tokens": 10, "turns": 1, "tool_calls": 1, "tool_errors": 0, "finish": "stop"})
        for problem, own in values.items()
        for sample, value in enumerate(own)
    ]  # fmt: skip


@pytest.fixture
def before(tmp_path: Path) -> str:
    return write(tmp_path / "before", scores({f"p{i}": [float(i < 10)] for i in range(40)}))


@pytest.fixture
def after(tmp_path: Path) -> str:
    return write(tmp_path / "after", scores({f"p{i}": [float(2 <= i < 30)] for i in range(40)}))


def test_flips_interval_and_test(before: str, after: str) -> None:
    result = compare([read_side("a", before), read_side("b", after)])
    assert [run["pass_at_1"] for run in result["runs"]] == [0.25, 0.7]
    (pair,) = result["pairs"]
    assert pair["difference"] == pytest.approx(0.45)
    assert 0.2 < pair["low"] < 0.45 < pair["high"] < 0.7
    assert pair["gained"] == [f"p{i}" for i in range(10, 30)] and pair["lost"] == ["p0", "p1"]
    assert pair["p_mcnemar"] == pytest.approx(2 * sum([1, 22, 231]) / 2**22)


def test_no_difference_is_no_difference(before: str) -> None:
    (pair,) = compare([read_side("a", before), read_side("b", before)])["pairs"]
    assert (pair["low"], pair["difference"], pair["high"], pair["p_mcnemar"]) == (0, 0, 0, 1)


def test_only_common_problems_are_paired(tmp_path: Path, before: str) -> None:
    other = write(tmp_path / "other", scores({"p0": [1.0], "new": [1.0]}))
    (pair,) = compare([read_side("a", before), read_side("b", other)])["pairs"]
    assert (pair["problems"], pair["only_from"], pair["only_to"]) == (1, 39, 1)


def test_nothing_in_common_is_an_error(tmp_path: Path, before: str) -> None:
    other = write(tmp_path / "other", scores({"new": [1.0]}))
    with pytest.raises(DataError, match="no problem_id in common"):
        compare([read_side("a", before), read_side("b", other)])


def test_undecided_is_not_correct_and_shown(tmp_path: Path, before: str) -> None:
    other = write(tmp_path / "other", scores({f"p{i}": [None] for i in range(40)}))
    result = compare([read_side("a", before), read_side("b", other)])
    assert result["runs"][1]["pass_at_1"] == 0 and result["runs"][1]["undecided"] == 40


def test_configuration_changes(tmp_path: Path, before: str, after: str) -> None:
    (Path(before) / "config.json").write_text('{"config": {"samples": 1, "x": 1}, "seed": 0}')
    (Path(after) / "config.json").write_text('{"config": {"samples": 2, "x": 1}, "seed": 0}')
    result = compare([read_side("a", before), read_side("b", after)])
    assert result["configuration"] == [{"key": "config.samples", "values": {"a": 1, "b": 2}}]
    assert "config.samples" in draw(result)


def test_trajectories_compare_as_scores(tmp_path: Path, make_trajectory: Callable[..., Trajectory]) -> None:
    source = write(tmp_path / "t", [make_trajectory(), make_trajectory(id="r:0:1/0", problem_id="p2", reward=0.0)])
    side = read_side("t", source)
    assert [score.value for score in side.scores] == [1.0, 0.0]
    assert side.scores[0].detail["tokens"] == 5


def test_other_kinds_and_fields_are_refused(tmp_path: Path, before: str) -> None:
    metric = write(tmp_path / "m", [Metric(run="r", step=1, name="reward", value=1.0)])
    with pytest.raises(UsageError, match="not metric records"):
        read_side("m", metric)
    with pytest.raises(InputMissing, match="'bleu'"):
        read_side("a", before, metric="bleu")
    side = read_side("a", before)
    with pytest.raises(UsageError, match="problemid"):
        compare([side, side], on=["problemid"])


def test_drawn_and_written(tmp_path: Path, before: str, after: str) -> None:
    (Path(after) / "result.json").write_text('{"seconds": 61.4}')
    result = compare([read_side("base", before), read_side("\x1b[2Jsft", after)])
    text = draw(result)
    assert "0.250" in text and "+0.450" in text and "p10, p11" in text and "and 12 more" in text and " 61" in text
    assert "\x1b" not in text and "excludes 0" in text
    write_comparison(result, str(tmp_path / "summary.json"))
    assert json.loads((tmp_path / "summary.json").read_text()) == result
