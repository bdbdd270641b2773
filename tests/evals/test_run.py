"""Evaluations with a random tiny model: scores, resume, figures."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rstar2cli.core import drain
from rstar2cli.core.config import Layer, resolve
from rstar2cli.core.errors import DataError, InputMissing, OutputConflict, Stopped
from rstar2cli.core.progress import Progress, ProgressFn, silent
from rstar2cli.evals.config import EvalConfig
from rstar2cli.evals.run import TOO_LONG, EvalResult, report, run_eval, score_all
from rstar2cli.policy.tiny import init_tiny
from rstar2cli.records import Problem, Score, Trajectory
from rstar2cli.shards.digest import data_digest
from rstar2cli.shards.lineage import Lineage
from rstar2cli.shards.reader import read_records
from rstar2cli.shards.writer import open_writer

PROBLEMS = [Problem(id=f"p{i}", source="s", prompt=f"{i}+{i}=?", answer=str(2 * i)) for i in range(5)]
SMALL = {"samples": 2, "max_turns": 2, "max_response": 12, "save_every": 2, "wave": 4, "dialogue.system": "short"}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("model") / "tiny"
    init_tiny(path)
    return str(path)


@pytest.fixture(autouse=True)
def no_stop() -> Iterator[None]:
    yield
    drain.reset()


def settings(**values: Any) -> EvalConfig:
    keys = {f"rollout.{key}": value for key, value in (SMALL | values).items() if key != "benchmark"}
    keys |= {key: value for key, value in values.items() if key == "benchmark"}
    return resolve(EvalConfig, [Layer(origin="test", values=keys)])


def evaluate(
    out: Path,
    model: str,
    config: EvalConfig,
    *,
    resume: bool = False,
    overwrite: bool = False,
    progress: ProgressFn = silent,
    name: str = "m",
) -> EvalResult:
    lineage = Lineage(command=["test"], config={}, inputs={})
    resolved = {"model": name}
    with open_writer(str(out), Score, lineage=lineage, config={}, resume=resume, overwrite=overwrite) as scores:
        return run_eval(
            PROBLEMS, model, config, scores, directory=str(out), lineage=lineage, resolved=resolved, seed=3,
            resume=resume, progress=progress,
        )  # fmt: skip


def stop_after(count: int) -> ProgressFn:
    def watch(progress: Progress) -> None:
        assert progress.task == "eval"
        if progress.done >= count:
            drain.request("SIGINT")

    return watch


def test_defaults_are_as_published() -> None:
    rollout = EvalConfig().rollout
    assert (rollout.samples, rollout.max_turns, rollout.max_response, rollout.sampling.temperature) == (
        16,
        30,
        30000,
        0.6,
    )
    assert resolve(EvalConfig, []) == EvalConfig()


def test_one_score_a_sample_in_the_order_of_problems(tmp_path: Path, model: str) -> None:
    result = evaluate(tmp_path / "out", model, settings(benchmark="tiny"))
    scores = list(read_records([str(tmp_path / "out")], Score))
    assert [(s.problem_id, s.sample) for s in scores] == [(f"p{i}", j) for i in range(5) for j in range(2)]
    kept = {t.id: t for t in read_records([str(tmp_path / "out" / "trajectories")], Trajectory)}
    for score in scores:
        trajectory = kept[str(score.trajectory_id)]
        assert score.value == trajectory.reward and score.verdict == trajectory.verdict
        assert score.detail["tokens"] == len(trajectory.response_ids) and score.detail["finish"] == trajectory.finish
        assert score.benchmark == "tiny" and score.metric == "correct"
    assert (result.summary.problems, result.summary.samples, result.resumed) == (5, 10, 0)
    written = json.loads((tmp_path / "out" / "result.json").read_text())
    assert written["pass_at_1"] == result.summary.pass_at_1 and written["seconds"] > 0


def test_a_stopped_evaluation_goes_on(tmp_path: Path, model: str) -> None:
    out = tmp_path / "out"
    with pytest.raises(Stopped):
        evaluate(out, model, settings(), progress=stop_after(3))
    drain.reset()
    assert not (out / "manifest.json").exists()
    result = evaluate(out, model, settings(), resume=True)
    assert result.resumed >= 3
    assert result.seconds is None  # the stopped run's are not known
    assert json.loads((out / "result.json").read_text())["seconds"] is None
    assert evaluate(out, model, settings(), resume=True).seconds is None
    ids = [trajectory.id for trajectory in read_records([str(out / "trajectories")], Trajectory)]
    assert sorted(ids) == sorted(f"eval:0:{i}/{j}" for i in range(5) for j in range(2))
    assert len(list(read_records([str(out)], Score))) == 10


def files(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_what_is_replaced_is_kept_whole_until_the_new_scores_are_written(tmp_path: Path, model: str) -> None:
    out = tmp_path / "out"
    evaluate(out, model, settings())
    before = files(out)
    with pytest.raises(Stopped, match="nothing is saved"):
        drain.request("SIGINT")
        evaluate(out, model, settings(), overwrite=True)
    drain.reset()
    assert files(out) == before
    with pytest.raises(Stopped, match=r"\d trajectory records are saved in .*/out/trajectories"):
        evaluate(out, model, settings(), overwrite=True, progress=stop_after(3))
    drain.reset()
    assert files(out / ".replaced") == before
    evaluate(out, model, settings(), resume=True)
    assert {path.name for path in out.iterdir()} == {name.partition("/")[0] for name in before}
    assert len(list(read_records([str(out)], Score))) == 10


def test_deterministic_resume_ends_the_same(tmp_path: Path, model: str) -> None:
    config = settings(deterministic=True)
    evaluate(tmp_path / "whole", model, config)
    with pytest.raises(Stopped):
        evaluate(tmp_path / "parts", model, config, progress=stop_after(4))
    drain.reset()
    evaluate(tmp_path / "parts", model, config, resume=True)
    for name in ("", "trajectories"):
        assert data_digest([str(tmp_path / "whole" / name)]) == data_digest([str(tmp_path / "parts" / name)])


def test_a_finished_evaluation_is_not_done_again(tmp_path: Path, model: str) -> None:
    first = evaluate(tmp_path / "out", model, settings())
    again = evaluate(tmp_path / "out", "no/such/model", settings(), resume=True)
    assert again == dataclasses.replace(first, resumed=10)


def test_another_model_is_refused_on_resume(tmp_path: Path, model: str) -> None:
    with pytest.raises(Stopped):
        evaluate(tmp_path / "out", model, settings(), progress=stop_after(1))
    drain.reset()
    with pytest.raises(OutputConflict, match="model: 'm' → 'other'"):
        evaluate(tmp_path / "out", model, settings(), resume=True, name="other")


def test_no_problems(tmp_path: Path) -> None:
    lineage = Lineage(command=[], config={}, inputs={})
    with (
        pytest.raises(InputMissing, match="no problems"),
        open_writer(str(tmp_path / "out"), Score, lineage=lineage, config={}) as scores,
    ):
        run_eval([], "m", EvalConfig(), scores, directory=str(tmp_path / "out"), lineage=lineage, resolved={})


def test_ids_must_be_unique(tmp_path: Path) -> None:
    lineage = Lineage(command=[], config={}, inputs={})
    with (
        pytest.raises(DataError, match="'p0'"),
        open_writer(str(tmp_path / "out"), Score, lineage=lineage, config={}) as scores,
    ):
        run_eval([PROBLEMS[0]] * 2, "m", EvalConfig(), scores, directory=str(tmp_path), lineage=lineage, resolved={})


def test_too_long_prompts_are_undecided_and_told(tmp_path: Path, model: str) -> None:
    longest = Problem(id="long", source="s", prompt="x" * 5000, answer="1")
    config = settings()
    made = score_all([], [longest], config)
    result = report(made)
    assert [score.detail["finish"] for score in made] == [TOO_LONG] * 2
    assert result.too_long == ["long"] and result.summary.undecided == 2 and result.summary.pass_at_1 == 0


def test_benchmarks_are_summed_up_apart() -> None:
    scores = [
        Score(benchmark=name, problem_id="p", sample=0, metric="correct", value=value)
        for name, value in [("a", 1.0), ("b", 0.0)]
    ]
    result = report(scores)
    assert result.summary.problems == 2 and result.summary.pass_at_1 == 0.5
    assert {name: figures.pass_at_1 for name, figures in result.benchmarks.items()} == {"a": 1.0, "b": 0.0}
