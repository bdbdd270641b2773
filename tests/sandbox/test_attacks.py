"""What hostile or broken code must not achieve."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from rstar2cli.sandbox.attacks import ATTACKS, Attack
from rstar2cli.sandbox.check import Range, laid_out
from rstar2cli.sandbox.config import SandboxConfig
from rstar2cli.sandbox.local import LocalSandbox
from rstar2cli.sandbox.outcome import Outcome


@pytest.fixture(scope="module")
def place() -> Iterator[Range]:
    with laid_out() as made:
        yield made


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_no_attack_gets_through(place: Range, attack: Attack) -> None:
    finding = place.attack(attack)
    if finding.result == "not applicable":
        pytest.skip(finding.why)
    assert (finding.result, finding.why) == ("held", "")


def test_a_breach_is_found() -> None:
    """The check itself fails where there are no walls."""
    by_name = {attack.name: attack for attack in ATTACKS}
    with laid_out(SandboxConfig(isolation="none")) as open_place:
        for name in ("read a secret on the host", "TCP to loopback", "write host files", "forbidden system calls"):
            assert open_place.attack(by_name[name]).result == "failed", name


@pytest.fixture(scope="module", params=["auto", "none"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[LocalSandbox]:
    """Time enough, on a busy machine too, for every other limit to be reached first."""
    box = LocalSandbox(SandboxConfig(workers=1, wall_s=30, cpu_s=30, memory_mib=256, isolation=request.param))
    yield box
    box.close()


def run(sandbox: LocalSandbox, code: str, wall_s: float | None = None) -> Outcome:
    outcome = sandbox.submit(code, wall_s=wall_s).result(timeout=100)
    after = sandbox.submit("print('alive')").result(timeout=100)
    assert (after.kind, after.stdout) == ("ok", "alive\n"), after
    return outcome


def test_an_endless_loop_keeps_its_output(sandbox: LocalSandbox) -> None:
    outcome = run(sandbox, "print('begun')\nwhile True: pass", wall_s=1)
    if outcome.kind != "overloaded":  # the machine was too busy to try it
        assert (outcome.kind, outcome.limit, outcome.stdout) == ("timeout", "1 s", "begun\n")


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
    box = LocalSandbox(SandboxConfig(workers=1, wall_s=60, cpu_s=1))
    try:
        outcome = run(box, "while True: pass")
        assert (outcome.kind, outcome.limit) == ("cpu", "1 s")
        ignoring = run(box, "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass")
        assert ignoring.kind == "cpu"
    finally:
        box.close()


def test_cpu_is_counted_over_all_processes() -> None:
    box = LocalSandbox(SandboxConfig(workers=1, wall_s=60, cpu_s=2))
    code = (
        "import os\nfor _ in range(3):\n    if os.fork() == 0:\n        while True: pass\nimport time\ntime.sleep(50)"
    )
    try:
        assert run(box, code).kind == "cpu"
    finally:
        box.close()


@pytest.mark.parametrize("code", ["x = bytearray(10**9)", "x = []\nwhile True: x.append(' ' * 10**6)"])
def test_a_memory_hog(sandbox: LocalSandbox, code: str) -> None:
    outcome = run(sandbox, code)
    assert (outcome.kind, outcome.limit) == ("memory", "256 MiB")


@pytest.mark.parametrize(
    "code, number",
    [
        ("import ctypes\nctypes.string_at(0)", 11),
        ("import os\nos.abort()", 6),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)", 15),
    ],
)
def test_signals(sandbox: LocalSandbox, code: str, number: int) -> None:
    outcome = run(sandbox, f"print('before')\n{code}")
    assert (outcome.kind, outcome.signal, outcome.stdout) == ("signal", number, "before\n")


def test_100_mb_of_output_keeps_head_and_tail() -> None:
    box = LocalSandbox(SandboxConfig(workers=1, wall_s=60, keep_chars=1000))
    try:
        outcome = run(box, "print('head')\nprint('x' * 100_000_000)")
        assert (outcome.kind, outcome.limit) == ("output_limit", "8 MiB")
        assert outcome.truncated and len(outcome.stdout) < 1100
        assert outcome.stdout.startswith("head\nx") and "characters cut]…" in outcome.stdout
        both = run(box, "import sys\nsys.stderr.write('e' * 300_000)\nprint('x' * 300_000)")
        assert (both.kind, both.stdout_bytes, both.stderr_bytes, both.truncated) == ("ok", 300_001, 300_000, True)
    finally:
        box.close()


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


def test_stopping_itself_ends_at_the_deadline(sandbox: LocalSandbox) -> None:
    assert run(sandbox, "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", wall_s=1).kind == "timeout"


@pytest.mark.parametrize("end", ["", "\ntime.sleep(60)"])
def test_orphans_end_without_isolation_too(end: str) -> None:
    box = LocalSandbox(SandboxConfig(workers=1, wall_s=30, isolation="none"))
    code = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    os.execvp('sleep', ['rstar2-orphan', '1000'])\n"
    try:
        outcome = run(box, f"{code}time.sleep(0.3)\nprint('parent'){end}", wall_s=2 if end else None)
        assert outcome.stdout == "parent\n"
        found = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        assert "rstar2-orphan" not in found
    finally:
        box.close()
