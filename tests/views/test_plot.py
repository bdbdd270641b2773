"""Curves in the terminal."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest

from rstar2cli.core.errors import EnvironmentMissing, InputMissing, UsageError
from rstar2cli.records import Metric
from rstar2cli.records.arrow import to_table
from rstar2cli.views.plot import Curve, draw, read_curve, save_png


def metrics(path: Path, values: list[tuple[int, float]], name: str = "reward") -> str:
    rows = [Metric(run="r", step=step, name=name, value=value) for step, value in values]
    path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    return str(path)


def test_curve_keeps_the_last_value_of_a_step(tmp_path: Path) -> None:
    path = metrics(tmp_path / "metrics.jsonl", [(1, 0.1), (2, 0.2), (2, 0.3)])
    (tmp_path / "run.json").write_text('{"kind": "run/1", "default": "metrics.jsonl"}')
    assert read_curve("a", path, "reward").points == ((1, 0.1), (2, 0.3))
    assert read_curve("a", str(tmp_path), "reward").points == ((1, 0.1), (2, 0.3))


def test_unknown_metric_lists_the_known(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        read_curve("a", metrics(tmp_path / "m.jsonl", [(1, 0.1)]), "rewrad")
    assert "did you mean 'reward'" in str(error.value.hint)


def test_no_finite_value_is_told(tmp_path: Path) -> None:
    table = to_table([Metric(run="r", step=1, name="reward", value=math.nan)], Metric)
    pq.write_table(table, tmp_path / "m.parquet")
    with pytest.raises(InputMissing, match="no finite value"):
        read_curve("a", str(tmp_path / "m.parquet"), "reward")


def test_a_rising_line_rises() -> None:
    curve = Curve(label="up", points=tuple((step, float(step)) for step in range(100)))
    lines = draw([curve], "reward", width=60, height=10).splitlines()
    rows = [line for line in lines if "┤" in line or "│" in line]
    firsts = [min((i for i, c in enumerate(row) if 0x2800 < ord(c) < 0x2900), default=-1) for row in rows]
    assert firsts == sorted(firsts, reverse=True) and len(rows) == 10
    assert max(map(len, lines)) <= 60
    assert "99" in lines[-2] and "last 99" in lines[-1]


def test_several_runs_have_signs_of_their_own() -> None:
    curves = [Curve(label="a", points=((1, 0.0), (2, 1.0))), Curve(label="b", points=((1, 1.0), (2, 0.5)))]
    text = draw(curves, "reward")
    assert text.count("●") == 3 and text.count("▲") == 3
    assert "\x1b" not in text and "\x1b[36m" in draw(curves, "reward", color=True)


@pytest.mark.parametrize("points", [((5, 0.0),), ((1, 2.0), (2, 2.0)), ((1, -3.0), (2, 1e9))])
def test_degenerate_ranges_draw(points: tuple[tuple[int, float], ...]) -> None:
    assert "●" in draw([Curve(label="x", points=points)], "m", width=30, height=4)


def test_hostile_labels_are_harmless() -> None:
    assert "\x1b" not in draw([Curve(label="\x1b]52;c;x\x07", points=((1, 1.0),))], "\x1b[2J")


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is not None, reason="matplotlib is installed")
def test_png_says_what_it_needs(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentMissing, match="matplotlib"):
        save_png([Curve(label="x", points=((1, 1.0),))], "m", str(tmp_path / "p.png"))


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="needs matplotlib")
def test_png_is_written(tmp_path: Path) -> None:
    save_png([Curve(label="$x", points=((1, 1.0), (2, 3.0)))], "m", str(tmp_path / "p.png"))
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
