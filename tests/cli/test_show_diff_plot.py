"""The commands show, diff and plot on small files."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from rstar2cli.cli.app import run
from rstar2cli.cli.labels import labelled
from rstar2cli.core.errors import UsageError
from rstar2cli.records import CallRecord, Metric, Record, Score, Selection, Trajectory, Turn

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def rstar2(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> tuple[int, str, str]:
        code = run(list(arguments))
        out, err = capsys.readouterr()
        return code, out, err

    return call


def write(path: Path, records: list[Record]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(msgspec.json.encode(record) + b"\n" for record in records))
    return str(path.parent)


def trajectory(number: int = 0) -> Trajectory:
    call = CallRecord(name="t", arguments='{"code": "print(1)"}', outcome="ok", output="stdout: 1")
    turn = Turn(text="so</reason><tool_call>…</tool_call>", policy="p", finish="stop", n_tokens=2, calls=[call])
    return Trajectory(
        id=f"r:1:{number}/0", run="r", step=1, slot=number, sample=0, seed=1, problem_id=f"p{number}", source="s",
        prompt_ids=[104, 105], response_ids=[97, 98], mask=[True, False], logprobs=[-1.0, None], turns=[turn],
        finish="stop", gold="1", answer="1", verdict="correct", reason=None, reward=1.0, n_turns=1, n_tool_calls=1,
        n_tool_errors=0, n_answers=1, p_err=0.0, p_format=0.0, deterministic=False,
    )  # fmt: skip


@pytest.fixture
def training(tmp_path: Path) -> str:
    """A training run of one step."""
    root = tmp_path / "rl"
    write(root / "rollouts" / "step-00001" / "a.jsonl", [trajectory(0), trajectory(1)])
    chosen = [Selection(id="r:1:1/0", group="r:1:1", kept=False, advantage=None, why="equal_rewards")]
    write(root / "selections" / "step-00001" / "a.jsonl", list(chosen))
    write(root / "metrics.jsonl", [Metric(run="r", step=s, name="reward", value=s / 10) for s in range(1, 6)])
    (root / "run.json").write_text('{"kind": "run/1", "default": "metrics.jsonl", "model": "model"}')
    return str(root)


@pytest.fixture
def evals(tmp_path: Path) -> tuple[str, str]:
    def scores(right: int) -> list[Record]:
        return [
            Score(benchmark="b", problem_id=f"p{i}", sample=0, metric="correct", value=float(i < right))
            for i in range(20)
        ]

    return write(tmp_path / "a" / "s.jsonl", scores(4)), write(tmp_path / "b" / "s.jsonl", scores(15))


def test_show_of_a_run_says_what_roc_thought(rstar2: Run, training: str) -> None:
    code, out, _ = rstar2("show", f"{training}/rollouts/step-00001", "r:1:1/0")
    assert code == 0 and "print(1)" in out and "equal_rewards" in out


def test_show_prints_the_record_as_json(rstar2: Run, training: str) -> None:
    code, out, _ = rstar2("show", f"{training}/rollouts/step-00001", "2", "--json")
    assert code == 0 and json.loads(out)["id"] == "r:1:1/0"


def test_show_writes_a_page(rstar2: Run, training: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    code, out, _ = rstar2("show", f"{training}/rollouts/step-00001", "--html", str(page))
    assert (code, out) == (0, f"{page}\n") and "<!doctype html>" in page.read_text()
    code, _, err = rstar2("show", f"{training}/rollouts/step-00001", "--html", str(tmp_path / "no" / "page.html"))
    assert code == 5 and "page.html" in err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nobody"], 4, "nobody"),
        (["r:1"], 2, "several ids"),
        (["--tokens"], 2, "-m MODEL"),
        (["--json", "--tokens"], 2, "excludes"),
    ],
)
def test_show_explains(rstar2: Run, training: str, arguments: list[str], code: int, words: str) -> None:
    got, _, err = rstar2("show", f"{training}/rollouts/step-00001", *arguments)
    assert got == code and words in err


def test_show_tokens_needs_the_model(rstar2: Run, training: str, tmp_path: Path) -> None:
    from rstar2cli.policy.tiny import init_tiny

    init_tiny(tmp_path / "tiny")
    source = f"{training}/rollouts/step-00001"
    code, out, _ = rstar2("show", source, "--tokens", "-m", str(tmp_path / "tiny"))
    assert code == 0 and "2 tokens, 1 trained on" in out and out.count("⟦") == 1
    code, out, _ = rstar2("show", source, "-m", str(tmp_path / "tiny"))
    assert code == 0 and "[prompt]" in out


def test_diff_prints_and_writes(rstar2: Run, evals: tuple[str, str], tmp_path: Path) -> None:
    target = tmp_path / "summary.json"
    code, out, _ = rstar2("diff", f"base={evals[0]}", f"sft={evals[1]}", "--format", "table", "-o", str(target))
    assert code == 0 and "base → sft" in out and "+0.550" in out
    summary = json.loads(target.read_text())
    assert [run["label"] for run in summary["runs"]] == ["base", "sft"] and summary["pairs"][0]["low"] > 0


def test_diff_formats(rstar2: Run, evals: tuple[str, str]) -> None:
    assert json.loads(rstar2("diff", *evals, "--json")[1])["kind"] == "comparison/1"
    rows = [json.loads(line) for line in rstar2("diff", *evals)[1].splitlines()]
    assert [row["row"] for row in rows] == ["run", "run", "difference", *["flip"] * 11]
    assert [row["pass_at_1"] for row in rows[:2]] == [0.2, 0.75]
    assert (rows[2]["from"], rows[2]["to"], rows[2]["gained"], rows[2]["lost"]) == ("a", "b", 11, 0)
    assert 0 < rows[2]["low"] < rows[2]["difference"] < rows[2]["high"]
    assert rows[3] == {"row": "flip", "from": "a", "to": "b", "change": "gained", "problem": "p4"}
    assert rstar2("diff", *evals, "--format", "csv")[1].count("\n") == 15
    assert rstar2("diff", *evals, "--format", "md")[1].startswith("| run |")


def test_diff_explains(rstar2: Run, evals: tuple[str, str], tmp_path: Path) -> None:
    assert rstar2("diff", evals[0])[0] == 2
    code, _, err = rstar2("diff", evals[0], str(tmp_path / "absent"))
    assert code == 4 and "absent" in err
    code, _, err = rstar2("diff", *evals, "--on", "problem")
    assert code == 2 and "problem_id" in err
    code, _, err = rstar2("diff", *evals, "--metric", "nope")
    assert code == 4 and "no scores of metric 'nope'" in err and "it has: correct" in err


def test_a_file_that_exists_is_replaced_only_when_asked(
    rstar2: Run, training: str, evals: tuple[str, str], tmp_path: Path
) -> None:
    commands = {
        "s.json": ("diff", *evals, "-o"),
        "p.html": ("show", f"{training}/rollouts/step-00001", "--html"),
        "c.png": ("plot", training, "--png"),
    }
    for name, command in commands.items():
        if name == "c.png" and importlib.util.find_spec("matplotlib") is None:
            continue
        file = tmp_path / name
        file.write_text("mine")
        code, _, err = rstar2(*command, str(file))
        assert code == 5 and f"{file}: exists" in err and "--overwrite" in err
        assert file.read_text() == "mine"
        assert rstar2(*command, str(file), "--overwrite")[0] == 0
        assert file.read_bytes() != b"mine"
        code, _, err = rstar2(*command, str(tmp_path), "--overwrite")
        assert code == 5 and "a directory" in err


def test_plot_draws_a_run(rstar2: Run, training: str) -> None:
    code, out, _ = rstar2("plot", training, "-y", "reward", "--height", "5")
    assert code == 0 and out.startswith("reward") and "last 0.5" in out
    code, _, err = rstar2("plot", training, "-y", "rewards")
    assert code == 2 and "did you mean 'reward'" in err


def test_labels(tmp_path: Path) -> None:
    assert labelled(["base=runs/a", "runs/b/"]) == [("base", "runs/a"), ("b", "runs/b/")]
    assert labelled(["x/eval", "y/eval"]) == [("x/eval", "x/eval"), ("y/eval", "y/eval")]
    odd = tmp_path / "lr=1"
    odd.mkdir()
    assert labelled([str(odd)]) == [("lr=1", str(odd))]
    with pytest.raises(UsageError, match="'a'"):
        labelled(["a=x", "a=y"])
