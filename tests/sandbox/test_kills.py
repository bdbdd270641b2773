"""What is killed under load is mended: nothing hangs, nothing is swapped, nothing is called the code's fault."""

from __future__ import annotations

import contextlib
import glob
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rstar2cli.sandbox.config import SandboxConfig
from rstar2cli.sandbox.local import LocalSandbox


def keeper_pid(box: LocalSandbox) -> int:
    """The keeper's process; 0 while it is being replaced."""
    keeper = box._crews[0].keeper
    return keeper.pid if keeper is not None else 0


def children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def warm_processes(box: LocalSandbox) -> list[int]:
    """Children of the keeper that have an own program: the others are first processes of namespaces."""
    return [pid for pid in children(keeper_pid(box)) if command(pid) != command(keeper_pid(box))]


def first_processes(box: LocalSandbox) -> list[int]:
    return [pid for pid in children(keeper_pid(box)) if command(pid) == command(keeper_pid(box))]


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def code_processes(box: LocalSandbox) -> list[int]:
    return [pid for warm in warm_processes(box) for pid in children(warm)]


@pytest.mark.parametrize(
    "victims", [lambda box: [keeper_pid(box)], warm_processes, first_processes, code_processes],
    ids=["keeper", "warm process", "first process", "code"],
)  # fmt: skip
def test_what_is_killed_under_load_costs_a_few_calls(victims: Callable[[LocalSandbox], list[int]]) -> None:
    box = LocalSandbox(SandboxConfig(workers=2, wall_s=30, cpu_s=30))
    try:
        assert box.submit("1").result(timeout=100).kind == "ok"
        futures = [box.submit(f"import time\ntime.sleep(0.05)\nprint({n}, input())", str(n)) for n in range(60)]
        for _ in range(3):
            time.sleep(0.3)
            for pid in victims(box):
                if pid:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
        outcomes = [future.result(timeout=100) for future in futures]
        for n, outcome in enumerate(outcomes):
            assert outcome.kind == "ok" or outcome.infrastructure, outcome
            assert outcome.stdout == (f"{n} {n}\n" if outcome.kind == "ok" else "")
        assert any(outcome.infrastructure for outcome in outcomes)
        assert box.submit("print(2)").result(timeout=100).stdout == "2\n"
    finally:
        box.close()


def groups() -> set[str]:
    own = {line.rpartition(":")[2] for line in Path("/proc/self/cgroup").read_text().splitlines()}
    found = set()
    for path in own:
        for controller in ("memory", "pids"):
            found |= set(glob.glob(f"/sys/fs/cgroup/{controller}{path}/rstar2-*"))
    return found


def test_a_removed_control_group_is_made_again() -> None:
    box = LocalSandbox(SandboxConfig(workers=1, wall_s=30))
    try:
        assert box.submit("1").result(timeout=100).kind == "ok"
        for directory in groups():
            if directory.endswith(f"-{keeper_pid(box)}"):
                for child in glob.glob(f"{directory}/*/"):
                    os.rmdir(child)
        assert box.submit("print(1)").result(timeout=100).stdout == "1\n"
    finally:
        box.close()


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # other tests leave and take theirs meanwhile
    fds = set(os.listdir("/proc/self/fd"))
    mounts = Path("/proc/self/mounts").read_text()
    box = LocalSandbox(SandboxConfig(workers=2, wall_s=30, cpu_s=30))
    mixed = ("print(1)", "1/0", "import os\nif os.fork() == 0:\n    os.setsid()\n    import time\n    time.sleep(60)")
    try:
        for _ in range(2):
            futures = [box.submit(mixed[n % len(mixed)]) for n in range(250)]
            assert {future.result(timeout=100).kind for future in futures} == {"ok", "error"}
            session = box.open_session().result(timeout=100)
            assert box.run_cell(session, "1", sequence=0).result(timeout=100).kind == "ok"
            box.close_session(session)
            until = time.monotonic() + 30
            while box.stats()["sessions"] and time.monotonic() < until:
                time.sleep(0.01)
            open_now = len(os.listdir(f"/proc/{keeper_pid(box)}/fd"))
            if _ == 0:
                steady = open_now
        assert abs(open_now - steady) <= 2
        assert first_processes(box) == [] and code_processes(box) == []
        keeper = keeper_pid(box)
    finally:
        box.close()
    assert set(os.listdir("/proc/self/fd")) == fds
    assert [group for group in groups() if group.endswith(f"-{keeper}")] == []
    assert Path("/proc/self/mounts").read_text() == mounts
    assert os.listdir(tmp_path) == []
    assert not Path(f"/proc/{keeper}").exists()


def test_a_host_that_is_killed_takes_all_with_it() -> None:
    program = (
        "from rstar2cli.sandbox.local import LocalSandbox\nfrom rstar2cli.sandbox.config import SandboxConfig\n"
        "box = LocalSandbox(SandboxConfig(workers=1, wall_s=50))\nbox.submit('1').result()\n"
        "box.submit('import time, os\\nif os.fork() == 0: os.setsid()\\ntime.sleep(50)')\n"
        "import time\ntime.sleep(0.5)\nprint(box._crews[0].keeper.pid, flush=True)\ntime.sleep(60)"
    )
    host = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert host.stdout is not None
    keeper = int(host.stdout.readline())
    tree = [keeper, *children(keeper)]
    tree += [grandchild for child in tree[1:] for grandchild in children(child)]
    assert len(tree) >= 4
    host.kill()
    host.wait()
    host.stdout.close()
    until = time.monotonic() + 30
    while any(Path(f"/proc/{pid}").exists() for pid in tree) and time.monotonic() < until:
        time.sleep(0.02)
    assert [pid for pid in tree if Path(f"/proc/{pid}").exists()] == []


@pytest.fixture(scope="module")
def fuzzed() -> object:
    box = LocalSandbox(SandboxConfig(workers=1, wall_s=30, cpu_s=30))
    yield box
    box.close()


@settings(max_examples=60, deadline=None)
@given(code=st.text(max_size=200), stdin=st.text(max_size=200), seed=st.integers(0, 2**53))
def test_any_code_has_an_outcome(fuzzed: LocalSandbox, code: str, stdin: str, seed: int) -> None:
    outcome = fuzzed.submit(code, stdin, seed=seed).result(timeout=100)
    assert not outcome.infrastructure, outcome


@settings(max_examples=40, deadline=None)
@given(data=st.binary(max_size=300))
def test_any_bytes_come_out_as_text(fuzzed: LocalSandbox, data: bytes) -> None:
    outcome = fuzzed.submit(f"import os\nn = os.write(1, {data!r})").result(timeout=100)
    assert (outcome.kind, outcome.stdout) == ("ok", data.decode("utf-8", "replace"))


@pytest.mark.parametrize("piece", ["(", "-", "not ", "a.", "[", "lambda: ", "{0:"])
def test_deep_code_that_imports_much_is_its_own_fault(fuzzed: LocalSandbox, piece: str) -> None:
    outcome = fuzzed.submit(f"import numpy\n{piece * 50_000}1").result(timeout=100)
    assert outcome.kind in ("error", "memory", "signal"), outcome
    assert fuzzed.submit("print(1)").result(timeout=100).stdout == "1\n"


def test_files_and_limits_of_one_call(fuzzed: LocalSandbox) -> None:
    files = {"data/in.txt": b"\xff\x00given", "b": b""}
    outcome = fuzzed.submit("open('data/in.txt', 'rb').read(), open('b').read()", files=files).result(timeout=100)
    assert outcome.stdout == "(b'\\xff\\x00given', '')\n"
    small = fuzzed.submit("x = bytearray(200 * 2**20)", memory_mib=64).result(timeout=100)
    assert (small.kind, small.limit) == ("memory", "64 MiB")
    quick = fuzzed.submit("import time\ntime.sleep(20)", wall_s=0.3).result(timeout=100)
    assert (quick.kind, quick.limit) == ("timeout", "0.3 s")
