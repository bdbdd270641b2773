"""Public problem sets: small rows of each shape, and the real files where they lie beside the repository."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rstar2cli.answers.equivalence import compare
from rstar2cli.core.errors import InputMissing
from rstar2cli.evals.benchmarks.load import BENCHMARKS, is_benchmark, load_benchmark
from rstar2cli.records import Problem
from rstar2cli.shards.rejects import Reject

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "math"
FILES = {"aime24": 30, "aime25": 30, "hmmt25": 30, "math500": 500, "gsm8k": 1319}


def load(name: str) -> tuple[list[Problem], list[Reject]]:
    rejects: list[Reject] = []
    return list(load_benchmark(name, rejects.append)), rejects


def rows(path: Path, *values: object) -> str:
    path.write_text("".join((value if isinstance(value, str) else json.dumps(value)) + "\n" for value in values))
    return str(path)


def test_aime_answers_are_integers(tmp_path: Path) -> None:
    path = rows(tmp_path / "a.jsonl", {"id": 7, "problem": "Q", "answer": "025"})
    (problem,), rejects = load(f"aime24:{path}")
    assert (problem.id, problem.answer, problem.answer_kind, rejects) == ("aime24/7", "25", "integer", [])


def test_chat_marks_and_degrees_are_taken_off(tmp_path: Path) -> None:
    prompt = (
        "<|im_start|>user\nHow many?\nPlease reason step by step, and put your final answer within \\boxed{}."
        "<|im_end|>\n<|im_start|>assistant\n<think>\n"
    )
    row = {"idx": 0, "prompt": prompt, "reference_solution": "\\boxed{336^\\circ}\n#### 336^\\circ"}
    (problem,), _ = load(f"aime25:{rows(tmp_path / 'a.jsonl', row)}")
    assert (problem.prompt, problem.answer) == ("How many?", "336")


def test_kinds_follow_the_gold(tmp_path: Path) -> None:
    golds = {"9": "integer", r"\frac{14}{3}": "rational", "p - q": "expression"}
    path = rows(tmp_path / "m.jsonl", *({"problem": "Q", "answer": gold, "unique_id": gold} for gold in golds))
    assert {problem.answer: problem.answer_kind for problem in load(f"math500:{path}")[0]} == golds


def test_rows_that_do_not_fit_are_rejected(tmp_path: Path) -> None:
    path = rows(
        tmp_path / "g.jsonl", {"question": "Q", "answer": "no mark"}, "[1]", {"question": "Q", "answer": "#### 1,000"}
    )
    problems, rejects = load(f"gsm8k:{path}")
    assert [problem.answer for problem in problems] == ["1000"]
    assert [(reject.line, reject.file) for reject in rejects] == [(1, path), (2, path)]


def test_names(tmp_path: Path) -> None:
    assert is_benchmark("aime24:") and is_benchmark("math500:x.jsonl")
    assert not is_benchmark("aime24") and not is_benchmark("synth:") and not is_benchmark("-")
    with pytest.raises(InputMissing, match="absent"):
        load(f"aime24:{tmp_path / 'absent.jsonl'}")


@pytest.mark.parametrize("name", BENCHMARKS)
def test_the_real_file(name: str) -> None:
    path = DATA / ("gsm8k_test.jsonl" if name == "gsm8k" else f"{name}.jsonl")
    if not path.exists():
        pytest.skip(f"no {path}")
    problems, rejects = load(f"{name}:{path}")
    assert (len(problems), rejects) == (FILES[name], [])
    assert len({problem.id for problem in problems}) == len(problems)
    for problem in problems:
        assert "<|im_" not in problem.prompt and "####" not in problem.answer
        assert compare(problem.answer, problem.answer, problem.answer_kind).verdict == "correct", problem.answer
