"""What hostile or broken code must not achieve."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from rstar2cli.sandbox.config import SandboxConfig
from rstar2cli.sandbox.local import LocalSandbox
from rstar2cli.sandbox.outcome import Outcome


@pytest.fixture(scope="module", params=["auto", "none"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[LocalSandbox]:
    """Time enough, on a busy machine too, for every other limit to be reached first."""
    with _box(request.param, wall_s=30) as box:
        yield box


@pytest.fixture(scope="module", params=["auto", "none"])
def hasty(request: pytest.FixtureRequest) -> Iterator[LocalSandbox]:
    """For what only the deadline ends."""
    with _box(request.param, wall_s=1.0) as box:
        yield box


@contextlib.contextmanager
def _box(isolation: Literal["auto", "none"], *, wall_s: float) -> Iterator[LocalSandbox]:
    box = LocalSandbox(
        SandboxConfig(
            workers=1, wall_s=wall_s, cpu_s=30, memory_mib=256, keep_chars=1000, isolation=isolation, processes=32
        )
    )
    try:
        yield box
    finally:
        box.close()


def run(sandbox: LocalSandbox, code: str) -> Outcome:
    outcome = sandbox.submit(code).result(timeout=60)
    after = sandbox.submit("print('alive')").result(timeout=60)
    assert (after.kind, after.stdout) == ("ok", "alive\n"), after
    return outcome


def alive(mark: str) -> bool:
    """Whether a process with this argument is running anywhere."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if mark in (entry / "cmdline").read_bytes().decode("utf-8", "replace"):
                    return True
            except OSError:
                continue
    return False


def test_an_endless_loop_keeps_its_output(hasty: LocalSandbox) -> None:
    outcome = run(hasty, "print('begun')\nwhile True: pass")
    assert (outcome.kind, outcome.limit, outcome.stdout) == ("timeout", "1 s", "begun\n")
    assert 1.0 <= outcome.seconds < 10


def test_time_without_a_core_is_not_charged() -> None:
    """With three rivals on its core a call is given longer, or is called starved; never a short timeout."""
    core = min(os.sched_getaffinity(0))
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    busy = "print('busy', flush=True)\nwhile True: pass"
    # each in a session of its own: the scheduler shares a core between sessions, not processes
    rivals = [
        subprocess.Popen([sys.executable, "-c", busy], stdout=subprocess.PIPE, start_new_session=True) for _ in range(3)
    ]
    for rival in rivals:
        assert rival.stdout is not None
        rival.stdout.readline()  # it runs from here on
    box = LocalSandbox(SandboxConfig(workers=1, wall_s=0.5, cpu_s=10))
    try:
        outcome = box.submit("while True: pass").result(timeout=60)
        assert outcome.kind in ("timeout", "overloaded")
        assert outcome.kind == "overloaded" or outcome.seconds > 0.6
    finally:
        os.sched_setaffinity(0, before)
        box.close()
        for rival in rivals:
            rival.kill()
            rival.wait()


def test_cpu_limit() -> None:
    box = LocalSandbox(SandboxConfig(workers=1, wall_s=30, cpu_s=1))
    try:
        outcome = run(box, "while True: pass")
        assert (outcome.kind, outcome.limit) == ("cpu", "1 s")
        ignoring = run(box, "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass")
        assert ignoring.kind == "cpu"
    finally:
        box.close()


def test_ignoring_all_signals_does_not_help(hasty: LocalSandbox) -> None:
    code = (
        "import signal\nfor s in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:\n"
        "    signal.signal(s, signal.SIG_IGN)\nwhile True: pass"
    )
    assert run(hasty, code).kind == "timeout"


@pytest.mark.parametrize("end", ["", "\ntime.sleep(60)"])
@pytest.mark.parametrize("double", [False, True])
def test_orphans_are_killed(sandbox: LocalSandbox, hasty: LocalSandbox, end: str, double: bool) -> None:
    box = hasty if end else sandbox
    mark = f"rstar2-orphan-{os.getpid()}-{time.monotonic_ns()}"
    inner = f"os.execvp('sleep', ['{mark}', '1000'])"
    fork = "if os.fork() == 0:\n    os.setsid()\n"
    nested = "    if os.fork(): os._exit(0)\n" if double else ""
    outcome = run(box, f"import os, time\n{fork}{nested}    {inner}\ntime.sleep(0.2)\nprint('parent'){end}")
    assert outcome.stdout == "parent\n"
    assert outcome.kind == ("timeout" if end else "ok")
    assert not alive(mark)


def test_an_orphan_holding_stdout_delays_nobody(sandbox: LocalSandbox) -> None:
    outcome = run(sandbox, "import os, time\nif os.fork() == 0:\n    os.setsid(); time.sleep(60)\nprint('done')")
    assert (outcome.kind, outcome.stdout) == ("ok", "done\n")
    assert outcome.seconds < 10


def test_100_mb_of_output(sandbox: LocalSandbox) -> None:
    outcome = run(sandbox, "print('head')\nprint('x' * 100_000_000)")
    assert (outcome.kind, outcome.limit) == ("output_limit", "8 MiB")
    assert outcome.truncated and len(outcome.stdout) < 1100
    assert outcome.stdout.startswith("head\nx") and "characters cut]…" in outcome.stdout


def test_300_kb_of_output_is_no_trouble(sandbox: LocalSandbox) -> None:
    outcome = run(sandbox, "import sys\nsys.stderr.write('e' * 300_000)\nprint('x' * 300_000)")
    assert (outcome.kind, outcome.stdout_bytes, outcome.stderr_bytes, outcome.truncated) == (
        "ok",
        300_001,
        300_000,
        True,
    )


@pytest.mark.parametrize("code", ["x = bytearray(10**9)", "x = []\nwhile True: x.append(' ' * 10**6)"])
def test_a_memory_hog(sandbox: LocalSandbox, code: str) -> None:
    outcome = run(sandbox, code)
    assert (outcome.kind, outcome.limit) == ("memory", "256 MiB")


@pytest.mark.parametrize(
    "code, number",
    [
        ("import ctypes\nctypes.string_at(0)", 11),
        ("import os\nos.abort()", 6),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", 9),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)", 15),
    ],
)
def test_signals(sandbox: LocalSandbox, code: str, number: int) -> None:
    outcome = run(sandbox, f"print('before')\n{code}")
    assert (outcome.kind, outcome.signal, outcome.stdout) == ("signal", number, "before\n")


def test_unbounded_recursion(sandbox: LocalSandbox) -> None:
    outcome = run(
        sandbox, "import sys\nsys.setrecursionlimit(10**9)\nclass A:\n    def __repr__(s): return repr(s)\nrepr(A())"
    )
    assert outcome.kind in ("signal", "memory", "error")


def test_undecodable_output(sandbox: LocalSandbox) -> None:
    outcome = run(sandbox, "import os\nos.write(1, b'a\\xff\\xfeb\\n')")
    assert (outcome.kind, outcome.stdout) == ("ok", "a\ufffd\ufffdb\n5\n")


@pytest.mark.parametrize("close", ["sys.stdout.close()", "os.close(1)", "os.closerange(0, 256)", "sys.stdout = None"])
def test_closing_stdout(sandbox: LocalSandbox, close: str) -> None:
    outcome = run(sandbox, f"import os, sys\nprint('a')\n{close}")
    assert (outcome.kind, outcome.stdout) == ("ok", "a\n")


@pytest.mark.parametrize(
    "forged", ['b\'{"error": "forged"}\'', "b'{'", "b'x' * 10**6", "b'[' * 30000", "b'{\"error\": 1}'", "b'\\n\\n'"]
)
def test_a_forged_report_only_refines_a_failure(sandbox: LocalSandbox, forged: str) -> None:
    write = f"import os\nos.set_blocking(3, False)\ntry: os.write(3, {forged})\nexcept OSError: pass\n"
    assert run(sandbox, write).kind == "ok"
    assert run(sandbox, write + "os._exit(4)").kind == "exit"
    assert run(sandbox, write + "os._exit(1)").kind in ("exit", "error")


def test_a_big_file(sandbox: LocalSandbox) -> None:
    outcome = run(sandbox, "with open('big', 'wb') as f:\n    for _ in range(300): f.write(b'x' * 10**6)")
    assert outcome.kind == "error" and "File too large" in (outcome.error or "")


def test_limits_cannot_be_raised(sandbox: LocalSandbox) -> None:
    outcome = run(sandbox, "import resource as r\nr.setrlimit(r.RLIMIT_AS, (r.RLIM_INFINITY, r.RLIM_INFINITY))")
    assert outcome.kind == "error"


def test_stopping_itself_ends_at_the_deadline(hasty: LocalSandbox) -> None:
    assert run(hasty, "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)").kind == "timeout"


def test_a_fork_bomb_ends_with_its_call(hasty: LocalSandbox) -> None:
    if not hasty.layers:
        pytest.skip("unlimited forks need a namespace to end in")
    outcome = run(hasty, "import os, time\nfor _ in range(300):\n    if os.fork() == 0: time.sleep(60)\ntime.sleep(60)")
    assert outcome.kind in ("timeout", "error")


def test_no_network(sandbox: LocalSandbox) -> None:
    if "network namespace" not in sandbox.layers:
        pytest.skip("no network namespace here")
    outcome = run(sandbox, "import socket\nsocket.create_connection(('127.0.0.1', 22), timeout=0.5)")
    assert outcome.kind == "error" and "OSError" in (outcome.error or "")


def test_host_files_cannot_be_written(sandbox: LocalSandbox, tmp_path: Path) -> None:
    if "read-only files" not in sandbox.layers:
        pytest.skip("no mount namespace here")
    tmp_path.chmod(0o777)
    outcome = run(sandbox, f"open({str(tmp_path / 'f')!r}, 'w')")
    assert outcome.kind == "error" and not (tmp_path / "f").exists()


def test_other_processes_cannot_be_signalled(sandbox: LocalSandbox) -> None:
    if "pid namespace" not in sandbox.layers:
        pytest.skip("no PID namespace here")
    victim = subprocess.Popen(["sleep", "60"])
    try:
        run(sandbox, f"import os\ntry: os.kill({victim.pid}, 9)\nexcept OSError: pass\nos.kill(1, 9)\nos.kill(-1, 9)")
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()


def test_no_zombies_are_left(sandbox: LocalSandbox) -> None:
    for _ in range(5):
        run(sandbox, "import os\nif os.fork() == 0: os._exit(0)")
    keeper = sandbox._keepers[0]._process.pid
    assert Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split() == []
