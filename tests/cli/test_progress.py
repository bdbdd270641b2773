"""Progress as lines: how often, and always the first and the last."""

from __future__ import annotations

import pytest

from rstar2cli.cli.progress import reporter
from rstar2cli.core.progress import Progress


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
