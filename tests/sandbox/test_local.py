"""What the embedded sandbox does for honest code."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from rstar2cli.sandbox.config import SandboxConfig
from rstar2cli.sandbox.local import LocalSandbox
from rstar2cli.sandbox.outcome import Outcome


@pytest.fixture(scope="module")
def sandbox() -> Iterator[LocalSandbox]:
    box = LocalSandbox(SandboxConfig(workers=2, wall_s=20, cpu_s=20))
    yield box
    box.close()


def run(sandbox: LocalSandbox, code: str, stdin: str = "", seed: int = 0) -> Outcome:
    return sandbox.submit(code, stdin, seed=seed).result(timeout=60)


def keeper_pid(box: LocalSandbox) -> int:
    keeper = box._crews[0].keeper
    assert keeper is not None
    return keeper.pid


@pytest.mark.parametrize(
    "code, stdout",
    [
        ("print(1)", "1\n"),
        ("1 + 1", "2\n"),
        ("x = 3\nx", "3\n"),
        ("None", ""),
        ("print(1); 2", "1\n2\n"),
        ("'a string alone'", "'a string alone'\n"),
        ("for i in range(2):\n    i", ""),
        ("", ""),
        ("# only a comment", ""),
        ("from __future__ import annotations\ndef f(x: Unknown): return 7\nf(1)", "7\n"),
        ("'doc'\nfrom __future__ import annotations\nprint(__doc__)", "doc\n"),
        ("print(__name__)", "__main__\n"),
        ("def f():\n    return g()\ndef g():\n    return 5\nf()", "5\n"),
        ("import math\nmath.factorial(2000) > 0", "True\n"),
        ("print(len(str(10 ** 5000)))", "5001\n"),
        ("print('é', '\\ud800')", "é \\ud800\n"),
        ("import atexit\natexit.register(print, 'bye')\nprint('hi')", "hi\nbye\n"),
        ("import threading\nthreading.Thread(target=print, args=(1,)).start()", "1\n"),
        ("import pickle\nclass A: pass\ntype(pickle.loads(pickle.dumps(A()))).__name__", "'A'\n"),
        ("import os\nprint(os.environ['MPLBACKEND'], os.environ['OMP_NUM_THREADS'])", "Agg 1\n"),
        ("import os\nprint(os.listdir())", "[]\n"),
        ("open('a.txt', 'w').write('x')\nprint(open('a.txt').read())", "x\n"),
        ("exit()", ""),
        ("raise SystemExit", ""),
    ],
)
def test_ok(sandbox: LocalSandbox, code: str, stdout: str) -> None:
    outcome = run(sandbox, code)
    assert (outcome.kind, outcome.stdout, outcome.stderr) == ("ok", stdout, "")


def test_stdin_is_given_or_at_its_end(sandbox: LocalSandbox) -> None:
    assert run(sandbox, "print(int(input()) + int(input()))", "2\n3\n").stdout == "5\n"
    assert run(sandbox, "import sys\nprint(sys.stdin.read())", "é\n\n").stdout == "é\n\n\n"
    assert run(sandbox, "import sys\nprint(len(sys.stdin.read()))", "x" * 1_000_000).stdout == "1000000\n"
    ended = run(sandbox, "input()")
    assert (ended.kind, ended.error) == ("error", "EOFError at line 1: EOF when reading a line\n  input()")


@pytest.mark.parametrize(
    "code, error",
    [
        ("x = 1\nprint(1 / 0)", "ZeroDivisionError at line 2: division by zero\n  print(1 / 0)"),
        ("def f():\n    return [][1]\n\nf()", "IndexError at line 2: list index out of range\n  return [][1]"),
        ("import json\njson.loads('{')", "JSONDecodeError at line 2: Expecting property name"),
        ("x = (1,\ny = 2", "SyntaxError at line 1: '(' was never closed\n  x = (1,"),
        ("if True:\nx = 1", "IndentationError at line 2: expected an indented block"),
        ("undefined", "NameError at line 1: name 'undefined' is not defined\n  undefined"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt at line 1"),
        ("class E(Exception):\n    def __str__(self): 1/0\nraise E", "E at line 3: <no message>\n  raise E"),
        ("def f(): f()\nf()", "RecursionError at line 1: maximum recursion depth exceeded"),
        ("raise ValueError('x' * 10**6)", "ValueError at line 1: xxx"),
        ("eval('1 +')", "SyntaxError at line 1: invalid syntax"),
        ("x = 'a\x00b'", "null bytes"),
        ("import rstar2cli", "ModuleNotFoundError at line 1: No module named 'rstar2cli'"),
    ],
)
def test_errors_have_the_users_line(sandbox: LocalSandbox, code: str, error: str) -> None:
    outcome = run(sandbox, code)
    assert outcome.kind == "error" and outcome.error is not None
    assert error in outcome.error and len(outcome.error) < 3000
    assert outcome.stdout == outcome.stderr == ""


def test_the_traceback_has_user_frames_only(sandbox: LocalSandbox) -> None:
    outcome = run(sandbox, "import json\ndef f(t):\n    return json.loads(t)\nf('{')")
    assert outcome.traceback is not None and "/" not in outcome.traceback
    assert outcome.traceback.startswith(
        "Traceback (most recent call last):\n  line 4, in <module>\n    f('{')\n"
        "  line 3, in f\n    return json.loads(t)\n"
    )


def test_partial_output_comes_with_an_error(sandbox: LocalSandbox) -> None:
    outcome = run(sandbox, "import sys\nprint('out')\nprint('err', file=sys.stderr)\n1/0")
    assert (outcome.kind, outcome.stdout, outcome.stderr) == ("error", "out\n", "err\n")


@pytest.mark.parametrize(
    "code, status, stderr",
    [("import sys\nsys.exit(3)", 3, ""), ("import os\nos._exit(9)", 9, ""), ("exit('no luck')", 1, "no luck\n")],
)
def test_exit_status(sandbox: LocalSandbox, code: str, status: int, stderr: str) -> None:
    outcome = run(sandbox, code)
    assert (outcome.kind, outcome.exit_code, outcome.stderr) == ("exit", status, stderr)


def test_the_seed_decides_every_random_source(sandbox: LocalSandbox) -> None:
    code = (
        "import random, uuid, secrets, numpy as np\n"
        "print(random.random(), uuid.uuid4(), secrets.token_hex(), np.random.rand(), "
        "np.random.default_rng().random())\n"
        "print(hash('text'), list({'a', 'b', 'c', 'd'}))"
    )
    first, second, other = (run(sandbox, code, seed=seed).stdout for seed in (5, 5, 6))
    assert first == second != ""
    assert first.splitlines()[0] != other.splitlines()[0]


def test_sympy_and_numpy_are_there(sandbox: LocalSandbox) -> None:
    outcome = run(
        sandbox, "import numpy, sympy\nx = sympy.Symbol('x')\nsympy.solve(x**2 - 4, x), int(numpy.arange(5).sum())"
    )
    assert (outcome.kind, outcome.stdout) == ("ok", "([-2, 2], 10)\n")


def test_nothing_of_ours_is_in_the_environment(sandbox: LocalSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hush")
    fresh = LocalSandbox(SandboxConfig(workers=1))
    try:
        assert "hush" not in run(fresh, "import os\nprint(dict(os.environ))").stdout
    finally:
        fresh.close()


def test_one_call_leaves_nothing_to_the_next() -> None:
    box = LocalSandbox(SandboxConfig(workers=1))
    try:
        first = run(
            box,
            "import os, math, builtins, signal\nos.environ['A'] = '1'\nmath.pi = 3\nbuiltins.leak = 1\n"
            "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nopen('f', 'w').write('x')\nprint(os.getcwd())",
        )
        second = run(
            box,
            "import os, math, signal\nprint(os.environ.get('A'), math.pi > 3, 'leak' in dir(__builtins__), "
            f"signal.getsignal(signal.SIGTERM) == signal.SIG_DFL, os.listdir(), "
            f"os.path.exists({first.stdout.strip() + '/f'!r}))",
        )
        assert second.stdout == "None True False True [] False\n"
    finally:
        box.close()


def test_only_standard_descriptors_are_open(sandbox: LocalSandbox) -> None:
    code = "import os\nfor fd in range(4, 256):\n    try: os.fstat(fd)\n    except OSError: continue\n    print(fd)"
    assert run(sandbox, code).stdout == ""


def test_many_calls_keep_their_results_apart(sandbox: LocalSandbox) -> None:
    futures = [sandbox.submit(f"print({n}, input())", str(n)) for n in range(60)]
    assert [future.result().stdout for future in futures] == [f"{n} {n}\n" for n in range(60)]


def test_closing_frees_everything() -> None:
    before = set(os.listdir("/proc/self/fd"))
    box = LocalSandbox(SandboxConfig(workers=2, wall_s=60, cpu_s=60))
    assert run(box, "1").kind == "ok"
    running = [box.submit("while True: pass") for _ in range(2)]
    waiting = box.submit("1")
    box.close()
    box.close()
    assert [future.result(timeout=10).kind for future in [*running, waiting]] == ["lost"] * 3
    assert box.submit("1").result().kind == "lost"
    assert set(os.listdir("/proc/self/fd")) == before


def test_a_dead_keeper_is_replaced_and_the_call_is_lost() -> None:
    box = LocalSandbox(SandboxConfig(workers=1, wall_s=30, cpu_s=30))
    try:
        assert run(box, "1").kind == "ok"
        future = box.submit("import time\ntime.sleep(30)")
        os.kill(keeper_pid(box), 9)
        lost = future.result(timeout=20)
        assert lost.kind == "lost" and lost.infrastructure and lost.detail
        assert run(box, "print(2)").stdout == "2\n"
    finally:
        box.close()


def test_limits_are_checked_when_configured() -> None:
    for bad in ({"wall_s": 0}, {"memory_mib": 10}, {"workers": -1}, {"endpoints": ("http://a", "http://a")}):
        with pytest.raises(ValueError):
            SandboxConfig(**bad)  # type: ignore[arg-type]
