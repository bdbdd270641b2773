"""Summaries of columns against values counted by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rstar2cli.core.errors import UsageError
from rstar2cli.records import Metric, Problem, Record, Score, Trajectory
from rstar2cli.shards.lineage import Lineage
from rstar2cli.shards.views import Database, connect
from rstar2cli.shards.writer import open_writer
from rstar2cli.stats.count import count_by
from rstar2cli.stats.describe import describe, figures


def view(out: Path, records: list[Any], cls: type[Record]) -> Database:
    lineage = Lineage(command=[], config={}, inputs={})
    with open_writer(str(out), cls, lineage=lineage, config={}) as writer:
        for record in records:
            writer.write(record)
    return connect({"this": [str(out)]})


@pytest.fixture
def problems(tmp_path):
    rows = [
        Problem(
            id=f"p{n}",
            source="a" if n < 3 else "b",
            prompt="x" * n,
            answer="1",
            solved=None if n == 0 else n,
            attempts=None if n == 0 else 4,
            tags=["t"] * n,
            extra={"split": "train" if n % 2 else "held-out", "params": {"k": n}},
        )
        for n in range(5)
    ]
    with view(tmp_path / "d", rows, Problem) as database:
        yield database


def test_columns(problems):
    rows = {row["column"]: row for row in describe(problems, "this")}
    assert rows["solved"] == {
        "column": "solved",
        "type": "integer",
        "nulls": 1,
        "distinct": 4,
        "mean": 2.5,
        "min": 1.0,
        "q25": 1.75,
        "median": 2.5,
        "q75": 3.25,
        "max": 4.0,
    }
    assert (rows["prompt"]["type"], rows["prompt"]["mean"], rows["prompt"]["max"]) == ("text (characters)", 2.0, 4.0)
    assert (rows["tags"]["type"], rows["tags"]["median"]) == ("list (items)", 2.0)
    assert (rows["source"]["distinct"], rows["source"]["nulls"]) == (2, 0)
    assert (rows["extra"]["mean"], rows["extra.split"]["distinct"], rows["extra.split"]["mean"]) == (2.0, 2, None)


def test_where_limits_all_figures(problems):
    assert {row["column"]: row for row in describe(problems, "this", "solved > 2")}["solved"]["min"] == 3
    assert figures(problems, "this", "solved > 2")["rows"] == 2
    assert count_by(problems, "this", [], "solved > 2 -- three and four") == [{"count": 2}]


def test_problem_figures(problems):
    assert figures(problems, "this") == {"rows": 5, "sources": 2, "solved_share": 10 / 16, "unmeasured_share": 0.2}


def test_count_by_fields_keys_of_extra_and_json_paths(problems):
    assert count_by(problems, "this", ["source"]) == [{"source": "a", "count": 3}, {"source": "b", "count": 2}]
    assert count_by(problems, "this", ["split"])[0] == {"split": "held-out", "count": 3}
    assert count_by(problems, "this", ["source", "extra.split"])[0] == {
        "source": "a",
        "extra.split": "held-out",
        "count": 2,
    }
    assert {row["extra.params.k"] for row in count_by(problems, "this", ["extra.params.k"])} == set("01234")
    assert {row["tags"] for row in count_by(problems, "this", ["tags"])} >= {"[]", "[t]"}
    with pytest.raises(UsageError, match="--by splitt: neither a field"):
        count_by(problems, "this", ["splitt"])
    with pytest.raises(UsageError):
        count_by(problems, "this", ["a'b"])


def trajectory(slot: int, **changes: Any) -> Trajectory:
    fields: dict[str, Any] = {
        "id": f"r:0:{slot}/0",
        "run": "r",
        "step": 0,
        "slot": slot,
        "sample": 0,
        "seed": 1,
        "problem_id": "p",
        "source": "s",
        "prompt_ids": [1],
        "response_ids": [1, 2, 3],
        "mask": [True, False, True],
        "logprobs": [-1.0, None, -2.0],
        "turns": [],
        "finish": "stop",
        "gold": "1",
        "answer": "1",
        "verdict": "correct",
        "reason": None,
        "reward": 1.0,
        "n_turns": 1,
        "n_tool_calls": 3,
        "n_tool_errors": 1,
        "n_answers": 1,
        "p_err": 1 / 3,
        "p_format": 0.0,
        "deterministic": False,
    }
    return Trajectory(**{**fields, **changes})


def test_trajectory_figures(tmp_path):
    rows = [
        trajectory(0),
        trajectory(0, id="r:0:0/1", sample=1, verdict="wrong", reward=0.0, finish="length", n_answers=0),
        trajectory(1, n_tool_calls=1, n_tool_errors=0),
        trajectory(2, finish="lost", verdict="undecided", reward=None, n_tool_calls=0, n_tool_errors=0, n_answers=0),
    ]
    with view(tmp_path / "d", rows, Trajectory) as database:
        assert figures(database, "this") == {
            "rows": 4,
            "groups": 3,
            "reward_mean": pytest.approx(2 / 3),
            "correct_share": 0.5,
            "undecided_share": 0.25,
            "lost_share": 0.25,
            "truncated_share": 0.25,
            "turn_limit_share": 0.0,
            "no_answer_share": 0.5,
            "tool_calls_per_trajectory": 7 / 4,
            "tool_error_share": 2 / 7,
            "model_tokens_mean": 2.0,
            "response_tokens_mean": 3.0,
        }


def test_metrics_have_a_row_for_each_name(tmp_path):
    rows = [Metric(run="r", step=step, name=name, value=float(step)) for step in (1, 2, 3) for name in ("loss", "it's")]
    with view(tmp_path / "m.jsonl", rows, Metric) as database:
        found = {row["column"]: row for row in describe(database, "this")}
        assert found["value of loss"]["mean"] == 2.0
        assert found["value of it's"]["max"] == 3.0
        assert figures(database, "this") == {"rows": 6, "runs": 1, "last_step": 3}


def test_score_details_have_rows_of_their_own(tmp_path):
    rows = [
        Score(benchmark="b", problem_id="p", sample=n, metric="correct", value=float(n), detail={"tokens": 10 * n})
        for n in (0, 1)
    ]
    with view(tmp_path / "d", rows, Score) as database:
        found = {row["column"]: row for row in describe(database, "this")}
        assert (found["detail.tokens"]["mean"], found["detail.tokens"]["max"]) == (5.0, 10.0)
        assert figures(database, "this")["value_mean"] == 0.5
