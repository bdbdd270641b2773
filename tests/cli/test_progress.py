"""Progress as lines: how often, and always the first and the last."""

from __future__ import annotations

import pytest

from rstar2cli.cli.progress import reporter
from rstar2cli.core.progress import Progress


def test_a_step_is_told_each_time_and_its_rollouts_only_if_they_take_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr("rstar2cli.cli.progress.time.monotonic", lambda: now)
    report = reporter(quiet=False)
    for step, seconds in enumerate((2, 2, 20), 1):
        for done in range(1, 5):
            now += seconds
            report(Progress(task="rollout", done=done, total=4, detail=True))
        report(Progress(task="train-rl", done=step, total=5, unit="steps", landmark=True))
    lines = [line.split()[:2] for line in capsys.readouterr().err.splitlines()]
    rollouts = [["rollout", "2/4"], ["rollout", "4/4"]]
    assert lines == [["train-rl", "1/5"], ["train-rl", "2/5"], *rollouts, ["train-rl", "3/5"]]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"quiet": False}, [1, 31, 60]),
        ({"quiet": False, "verbose": True}, list(range(1, 61))),
        ({"quiet": True}, []),
    ],
)
def test_lines_come_every_30_s_or_every_second(
    options: dict[str, bool], told: list[int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr("rstar2cli.cli.progress.time.monotonic", lambda: now)
    report = reporter(**options)
    for half_second in range(120):
        now = half_second / 2
        report(Progress(task="sft", done=1 + half_second // 2, total=None if half_second < 119 else 60, unit="steps"))
    lines = [int(line.split()[1].split("/")[0]) for line in capsys.readouterr().err.splitlines()]
    assert list(dict.fromkeys(lines)) == told
