"""Sessions: state from cell to cell, each cell at most once, and how they end."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rstar2cli.sandbox.config import SandboxConfig
from rstar2cli.sandbox.local import LocalSandbox
from rstar2cli.sandbox.outcome import Outcome, SandboxRefused


@pytest.fixture(scope="module", params=["auto", "none"])
def box(request: pytest.FixtureRequest) -> Iterator[LocalSandbox]:
    made = LocalSandbox(SandboxConfig(workers=2, wall_s=30, cpu_s=30, sessions=4, isolation=request.param))
    yield made
    made.close()


@pytest.fixture
def session(box: LocalSandbox) -> Iterator[Notebook]:
    made = Notebook(box)
    yield made
    box.close_session(made.name)


class Notebook:
    def __init__(self, box: LocalSandbox, seed: int = 0) -> None:
        self.box = box
        self.name = box.open_session(seed=seed).result(timeout=100)
        self.next = 0

    def run(self, code: str) -> Outcome:
        self.next += 1
        return self.box.run_cell(self.name, code, sequence=self.next - 1).result(timeout=100)


def test_state_is_kept(session: Notebook) -> None:
    assert session.run("x = 5\ndef f(): return x + 1").kind == "ok"
    assert session.run("print('out')\nf()").stdout == "out\n6\n"
    assert session.run("open('a', 'w').write('kept')").kind == "ok"
    assert session.run("open('a').read()").stdout == "'kept'\n"
    assert session.run("import numpy, sympy\nsympy.sqrt(8)").stdout == "2*sqrt(2)\n"


def test_cells_end_like_calls_and_the_session_goes_on(session: Notebook) -> None:
    first = session.run("def f():\n    return 1 / 0\nx = 1")
    assert first.kind == "ok"
    failed = session.run("f()")
    assert (failed.kind, failed.error) == (
        "error",
        "ZeroDivisionError at line 2 of cell 0: division by zero\n  return 1 / 0",
    )
    assert session.run("x = (").error == "SyntaxError at line 1: '(' was never closed\n  x = ("
    stopped = session.run("import sys\nprint('before')\nsys.exit(3)")
    assert (stopped.kind, stopped.exit_code, stopped.stdout) == ("exit", 3, "before\n")
    assert session.run("x").stdout == "1\n"


def test_a_repeated_cell_is_not_executed_again(session: Notebook) -> None:
    session.run("n = 0")
    first = session.run("n += 1\nprint(n)")
    again = session.box.run_cell(session.name, "n += 1\nprint(n)", sequence=1).result(timeout=100)
    assert again == first
    assert session.run("n").stdout == "1\n"
    old = session.box.run_cell(session.name, "n = 0", sequence=0).result(timeout=100)
    ahead = session.box.run_cell(session.name, "n = 0", sequence=7).result(timeout=100)
    assert (old.kind, ahead.kind) == ("lost", "lost")
    assert session.run("n").stdout == "1\n"


def test_a_cell_repeated_while_it_runs_gets_the_same_outcome(session: Notebook) -> None:
    code = "import time\ntime.sleep(0.3)\nprint('once')"
    futures = [session.box.run_cell(session.name, code, sequence=0) for _ in range(3)]
    after = session.box.run_cell(session.name, "print('next')", sequence=1)
    assert [future.result(timeout=100).stdout for future in futures] == ["once\n"] * 3
    assert after.result(timeout=100).stdout == "next\n"


@pytest.mark.parametrize(
    "code, kind, words",
    [
        ("import os\nos._exit(4)", "exit", "exit status 4"),
        ("import os\nos.abort()", "signal", "signal 6"),
        ("print('x' * 10**7)", "output_limit", "output limit"),
    ],
)
def test_code_that_ends_its_session_is_told_so(session: Notebook, code: str, kind: str, words: str) -> None:
    assert session.run(code).kind == kind
    for _ in range(2):
        later = session.run("1")
        assert later.kind == "error" and later.error is not None
        assert later.error.startswith("SessionEnded: cell 0 ended it") and words in later.error


def test_a_deadline_interrupts_and_then_kills() -> None:
    box = LocalSandbox(SandboxConfig(workers=1, wall_s=1, cpu_s=30, sessions=1))
    try:
        notebook = Notebook(box)
        notebook.run("x = 7")
        late = notebook.run("print('partly', flush=True)\nwhile True: pass")
        if late.kind == "overloaded":
            pytest.skip("too busy a machine to tell")
        assert (late.kind, late.stdout, late.limit) == ("timeout", "partly\n", "1 s")
        assert notebook.run("x").stdout == "7\n"
        stubborn = notebook.run("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass")
        assert stubborn.kind == "timeout"
        assert "SessionEnded" in (notebook.run("x").error or "")
    finally:
        box.close()


def test_the_seed_decides_and_is_set_once(box: LocalSandbox) -> None:
    outputs = []
    for seed in (5, 5, 6):
        notebook = Notebook(box, seed)
        outputs.append([notebook.run("import random\nrandom.random()").stdout for _ in range(2)])
        box.close_session(notebook.name)
    assert outputs[0] == outputs[1] != outputs[2]
    assert outputs[0][0] != outputs[0][1]


def test_ids_can_not_be_guessed_and_unknown_ones_are_lost(box: LocalSandbox) -> None:
    first, second = Notebook(box), Notebook(box)
    assert first.name != second.name and len(first.name) == 32
    assert box.run_cell("0" * 32, "1", sequence=0).result(timeout=100).kind == "lost"
    box.close_session(first.name)
    box.close_session(first.name)
    assert first.run("1").kind == "lost"
    assert second.run("1").kind == "ok"
    box.close_session(second.name)


def test_only_so_many_at_once(box: LocalSandbox) -> None:
    notebooks = [Notebook(box) for _ in range(4)]
    with pytest.raises(SandboxRefused) as refused:
        box.open_session().result(timeout=100)
    assert refused.value.kind == "overloaded"
    for notebook in notebooks:
        box.close_session(notebook.name)
    until = time.monotonic() + 60
    while box.stats()["sessions"] and time.monotonic() < until:
        time.sleep(0.01)
    assert Notebook(box).run("1").kind == "ok"


def test_sessions_are_users_and_directories_of_their_own() -> None:
    box = LocalSandbox(SandboxConfig(workers=1, wall_s=30, sessions=2))
    try:
        if "user ids" not in box.layers:
            pytest.skip("no user ids here")
        first, second = Notebook(box), Notebook(box)
        look = "import os\nopen('mine', 'w').close()\nprint(os.getuid(), os.listdir())"
        ids = {first.run(look).stdout, second.run(look).stdout, box.submit(look).result(timeout=100).stdout}
        assert len(ids) == 3 and all("['mine']" in text for text in ids)
    finally:
        box.close()


def test_idle_and_old_sessions_are_lost() -> None:
    for limits in ({"session_idle_s": 0.5}, {"session_total_s": 0.5}):
        box = LocalSandbox(SandboxConfig(workers=1, wall_s=30, sessions=1, **limits))  # type: ignore[arg-type]
        try:
            notebook = Notebook(box)
            time.sleep(1.5)
            assert notebook.run("1").kind == "lost"
        finally:
            box.close()


def test_a_session_killed_from_outside_is_lost() -> None:
    box = LocalSandbox(SandboxConfig(workers=1, wall_s=30, sessions=2))
    try:
        between, during = Notebook(box), Notebook(box)
        mark = f"rstar2-{os.getpid()}"
        for notebook in (between, during):
            notebook.run(f"import ctypes\nctypes.CDLL(None).prctl(15, b'{mark[:15]}', 0, 0, 0)")
        running = box.run_cell(during.name, "import time\ntime.sleep(60)", sequence=1)
        time.sleep(0.3)
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    name = Path(f"/proc/{entry}/comm").read_text().strip()
                except OSError:
                    continue
                if name == mark[:15]:
                    os.kill(int(entry), 9)
        assert running.result(timeout=60).kind == "lost"
        until = time.monotonic() + 30
        while box.stats()["sessions"] and time.monotonic() < until:
            time.sleep(0.01)
        during.next += 1
        assert during.run("1").kind == "lost"
        assert between.run("1").kind == "lost"
        assert Notebook(box).run("1").kind == "ok"
    finally:
        box.close()
