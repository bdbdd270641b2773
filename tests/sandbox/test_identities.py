"""The walls as other users: everyone who is not root needs a user namespace, and is one user in all calls.

Needs root to become another, and a Python that other users can read; skipped elsewhere.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rstar2cli
from rstar2cli.core.errors import EnvironmentMissing
from rstar2cli.sandbox.attacks import ATTACKS
from rstar2cli.sandbox.config import SandboxConfig
from rstar2cli.sandbox.local import LocalSandbox

NOBODY = 65534
CHECK = """
import json, msgspec
from rstar2cli.sandbox.check import laid_out
from rstar2cli.sandbox.attacks import ATTACKS
with laid_out() as place:
    print(json.dumps({"layers": place.layers, "found": {a.name: vars(place.attack(a)) for a in ATTACKS}}))
"""
SERVE = """
import sys
from rstar2cli.__main__ import main
sys.argv = ["rstar2", "sandbox-serve", "--check", "--format", "jsonl"]
main()
"""


def as_nobody(program: str) -> subprocess.CompletedProcess[str]:
    if os.geteuid() != 0:
        pytest.skip("only root can become others")
    packages = [path for path in sys.path if path.endswith("site-packages")]
    environment = {
        "PYTHONPATH": ":".join([str(Path(rstar2cli.__file__).parents[1]), *packages]),
        "PATH": "/usr/bin:/bin",
    }
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        command = [python, "-c", "import msgspec, rstar2cli, starlette"]
        try:
            done = subprocess.run(command, user=NOBODY, env=environment, cwd="/", capture_output=True)
        except (FileNotFoundError, PermissionError):
            continue
        if done.returncode == 0:
            command[-1] = program
            return subprocess.run(command, user=NOBODY, env=environment, cwd="/", capture_output=True, text=True)
    pytest.skip("no Python here that other users can read, with these packages")


@functools.cache
def findings() -> dict[str, Any]:
    done = as_nobody(CHECK)
    if "can't isolate code" in done.stderr:
        pytest.skip("no user namespaces here")
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.parametrize("name", [attack.name for attack in ATTACKS])
def test_no_attack_gets_through_as_a_plain_user(name: str) -> None:
    finding = findings()["found"][name]
    if finding["result"] == "not applicable":
        pytest.skip(finding["why"])
    assert (finding["result"], finding["why"]) == ("held", "")


def test_a_plain_user_has_one_id_for_all_calls_and_says_so() -> None:
    assert "user namespace" in findings()["layers"] and "user ids" not in findings()["layers"]
    assert findings()["found"]["be root, or anyone known"]["result"] == "not applicable"


def test_the_command_line_check_passes_as_nobody() -> None:
    findings()
    done = as_nobody(SERVE)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert {row["attack"] for row in rows} == {attack.name for attack in ATTACKS}


@pytest.mark.parametrize(
    "layer", ["file jail", "pid namespace", "network namespace", "ipc namespace", "uts namespace", "seccomp"]
)
def test_below_the_minimum_it_refuses(layer: str) -> None:
    with pytest.raises(EnvironmentMissing) as refused:
        LocalSandbox(SandboxConfig(workers=1), without=[layer])
    assert f"no {layer} (told to do without)" in refused.value.message
    assert refused.value.hint is not None and "isolation=none" in refused.value.hint


@pytest.mark.parametrize("without", [["cgroup memory and pids"], ["user ids"], ["user ids", "cgroup memory and pids"]])
def test_what_a_weaker_host_still_holds(without: list[str]) -> None:
    box = LocalSandbox(SandboxConfig(workers=2, wall_s=30, cpu_s=30, memory_mib=256), without=without)
    try:
        assert set(without) <= set(box.missing) and not set(without) & set(box.layers)
        outcomes = [
            box.submit(code).result(timeout=100)
            for code in (
                "x = []\nwhile True: x.append(b'x' * 10**6)",
                "import os, time\nfor _ in range(300):\n    if os.fork() == 0: time.sleep(60)",
                "import os, time\nfor _ in range(3):\n    if os.fork() == 0: x = b'x' * 150_000_000; time.sleep(60)\n"
                "time.sleep(60)",
                "print(1)",
            )
        ]
        assert outcomes[0].kind == "memory"
        if len(without) == 1:  # the kernel limits the processes of root in no other way
            assert outcomes[1].kind == "error" and "BlockingIOError" in (outcomes[1].error or "")
        assert outcomes[3].stdout == "1\n"
        if "cgroup memory and pids" in without:
            assert outcomes[2].kind == "memory"
            # what no controller counts is not allowed
            assert box.submit("import os\nos.memfd_create('x')").result(timeout=100).kind == "error"
    finally:
        box.close()


def test_without_isolation_nothing_is_claimed() -> None:
    box = LocalSandbox(SandboxConfig(workers=1, isolation="none"))
    try:
        assert box.layers == [] and "file jail" in box.missing
        assert box.submit("import numpy\nprint(1)").result(timeout=100).stdout == "1\n"
        assert box.submit("import rstar2cli").result(timeout=100).kind == "error"
    finally:
        box.close()


def test_another_system_is_told_what_works_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(EnvironmentMissing, match="Linux only"):
        LocalSandbox(SandboxConfig())
