"""Workers that die, hang, grow, or meet hostile text."""

from __future__ import annotations

import ast
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import rstar2cli
from rstar2cli.answers.policy import DEFAULT
from rstar2cli.grading.grade import Grader
from rstar2cli.grading.workers import Workers

GOLD, SAME, OTHER = r"\sqrt{2}", r"\frac{2}{\sqrt{2}}", r"\sqrt{3}"
ENDLESS = r"\int_0^\infty \sin(x^x) e^{\sin(x^9)} dx"
PACKAGE = Path(rstar2cli.__file__).parent


def children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task")
    return [int(child) for task in tasks.iterdir() for child in (task / "children").read_text().split()]


def nurseries() -> set[int]:
    found = set()
    for pid in children(os.getpid()):
        if b"rstar2cli.grading.nursery" in Path(f"/proc/{pid}/cmdline").read_bytes():
            found.add(pid)
    return found


@pytest.fixture
def workers() -> Iterator[Workers]:
    with Workers(2) as made:
        made.ready()
        yield made


@pytest.fixture
def nursery(workers: Workers) -> int:
    """The newest one: the session's grader may have one too."""
    return max(nurseries())


def verdict(workers: Workers, answer: str = SAME, gold: str = GOLD) -> tuple[str, str | None]:
    result = workers.compare(answer, gold, None, DEFAULT)
    return result.verdict, result.reason


def test_a_worker_killed_between_rows_is_replaced(workers: Workers, nursery: int) -> None:
    assert verdict(workers) == ("correct", None)
    for pid in children(nursery):
        os.kill(pid, signal.SIGKILL)
    assert verdict(workers) == ("correct", None)
    assert verdict(workers, OTHER) == ("wrong", "different")


def killing_workers(nursery: int, until: threading.Event, pause: float) -> None:
    while not until.wait(pause):
        for pid in children(nursery):
            os.kill(pid, signal.SIGKILL)


def test_a_row_whose_worker_dies_each_time_is_undecided(workers: Workers, nursery: int) -> None:
    done = threading.Event()
    killer = threading.Thread(target=killing_workers, args=(nursery, done, 0.02))
    killer.start()
    try:
        assert verdict(workers, ENDLESS, "x") == ("undecided", "checker_lost")
    finally:
        done.set()
        killer.join()
    assert verdict(workers) == ("correct", None)


def test_workers_dying_under_load_cost_no_wrong_verdict(workers: Workers, nursery: int) -> None:
    rows = [(SAME, "correct"), (OTHER, "wrong")] * 100
    done = threading.Event()
    killer = threading.Thread(target=killing_workers, args=(nursery, done, 0.3))
    killer.start()
    try:
        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(lambda row: verdict(workers, row[0]), rows))
    finally:
        done.set()
        killer.join()
    for (kind, reason), (_, expected) in zip(found, rows, strict=True):
        assert kind == expected or (kind, reason) == ("undecided", "checker_lost")
    assert sum(kind == expected for (kind, _), (_, expected) in zip(found, rows, strict=True)) > 100


def test_a_killed_nursery_is_replaced(workers: Workers, nursery: int) -> None:
    os.kill(nursery, signal.SIGKILL)
    for pid in children(nursery):
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 30
    while verdict(workers) != ("correct", None):
        assert time.monotonic() < deadline
    assert verdict(workers, OTHER) == ("wrong", "different")


def test_the_limit_kills_and_the_next_row_is_served(workers: Workers, nursery: int) -> None:
    assert verdict(workers, ENDLESS, "x") == ("undecided", "limit")
    assert verdict(workers) == ("correct", None)


def test_a_stopped_worker_does_not_hang_the_row() -> None:
    with Workers(1, wall_seconds=0.5) as workers:
        assert verdict(workers) == ("correct", None)
        for pid in children(max(nurseries())):
            os.kill(pid, signal.SIGSTOP)
        assert verdict(workers) == ("correct", None)


def test_nothing_is_left_behind() -> None:
    before, descriptors = nurseries(), set(os.listdir("/proc/self/fd"))
    with Workers(2) as workers:
        verdict(workers)
        (mine,) = nurseries() - before
        kin = [mine, *children(mine)]
    assert nurseries() == before
    assert set(os.listdir("/proc/self/fd")) == descriptors
    assert not any(Path(f"/proc/{pid}").exists() for pid in kin)


def test_closing_at_once_kills_what_is_still_loading() -> None:
    before = nurseries()
    begun = time.monotonic()
    with Workers(1) as workers:
        workers.start()
    assert nurseries() == before and time.monotonic() - begun < 60


@pytest.mark.parametrize(
    "answer",
    [
        '__import__("os").system("touch {mark}")',
        '1\\pi + __import__("os").system("touch {mark}")',
        '[__import__("os").system("touch {mark}")]',
        '\\frac{{__import__("os").system("touch {mark}")}}{{2}}',
        "\\input{{|touch {mark}}}",
        "exec(open('/proc/self/cmdline').read())",
        "(lambda: open('{mark}', 'w'))()",
        "x.__class__.__bases__[0].__subclasses__()",
        'f\'{{open("{mark}", "w")}}\'',
        '\\text{{"; touch {mark}; "}}',
        "S(\"open('{mark}','w')\")",
        "'+str(open('{mark}','w'))+'",
    ],
)
def test_hostile_answers_do_nothing(grader: Grader, tmp_path: Path, answer: str) -> None:
    mark = tmp_path / "mark"
    for gold in ("7", r"\begin{pmatrix}1\\2\end{pmatrix}", "x+1"):
        assert grader.compare(answer.format(mark=mark), gold).verdict == "wrong"
    assert not mark.exists()


def test_no_code_of_ours_evaluates_text() -> None:
    """Nothing in answers/ or grading/ calls what would run or sympify a text."""
    forbidden = {"eval", "exec", "compile", "sympify", "parse_expr", "S", "lambdify", "simplify", "__import__"}
    for file in [*(PACKAGE / "answers").glob("*.py"), *(PACKAGE / "grading").glob("*.py")]:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call):
                called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
                if called == "compile" and isinstance(node.func, ast.Attribute):
                    continue  # re.compile
                assert called not in forbidden, f"{file.name}:{node.lineno}: {called}"


def test_the_latex_parser_meets_no_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library imports parse_expr and sympify; no text of an answer reaches them."""
    import builtins

    import latex2sympy2_extended.latex2sympy2 as library
    import sympy.parsing.sympy_parser as parser

    from rstar2cli.grading.algebra import Sympy

    def refuse(*arguments: object, **options: object) -> object:
        raise AssertionError(f"evaluated {arguments!r}")

    # sympify of a text imports parse_expr when it is called, so it is refused too
    for module, name in ((library, "parse_expr"), (parser, "parse_expr"), (parser, "eval_expr"), (builtins, "eval")):
        monkeypatch.setattr(module, name, refuse)
    for gold, answer in (
        (r"\frac{x^2-1}{x-1}", "x+1"),
        (r"\gcd(4,6)x", "2x"),
        (r"\begin{pmatrix}x\end{pmatrix}2", r"\begin{pmatrix}2x\end{pmatrix}"),
    ):
        assert Sympy().equal(gold, answer)


def test_nothing_is_imported_from_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("sympy", "msgspec", "random"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    with Workers(1) as workers:
        assert workers.compare(r"\sqrt{4}", r"\frac{4}{2}+\sqrt{0}", None, DEFAULT).verdict == "correct"
    assert not (tmp_path / "ran").exists()
