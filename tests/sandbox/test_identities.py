"""The walls under other identities: root with rights to give away, and a user with none.

Needs root to become either, and a Python that other users can read; skipped elsewhere.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rstar2cli

NOBODY = 65534
PROBE = """
import json, os, sys
from rstar2cli.sandbox.local import LocalSandbox
from rstar2cli.sandbox.config import SandboxConfig
box = LocalSandbox(SandboxConfig(workers=1, wall_s=20, cpu_s=20))
outcomes = [box.submit(code).result() for code in json.loads(sys.argv[1])]
print(json.dumps([box.layers, *[[o.kind, o.stdout, o.error] for o in outcomes]]))
box.close()
"""


def readable_python() -> str | None:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        done = (
            subprocess.run([candidate, "-c", "1"], user=NOBODY, capture_output=True)
            if Path(candidate).exists()
            else None
        )
        if done is not None and done.returncode == 0:
            return candidate
    return None


def probe(user: int, *codes: str) -> list[Any]:
    if os.geteuid() != 0:
        pytest.skip("only root can become others")
    try:
        python = readable_python()
    except PermissionError:
        python = None
    if python is None:
        pytest.skip("no Python here that other users can read")
    packages = [path for path in sys.path if path.endswith("site-packages")]
    environment = {
        "PYTHONPATH": ":".join([str(Path(rstar2cli.__file__).parents[1]), *packages]),
        "PATH": "/usr/bin:/bin",
    }
    done = subprocess.run(
        [python, "-c", PROBE, json.dumps(codes)], user=user, env=environment, capture_output=True, text=True, cwd="/"
    )
    if "Permission" in done.stderr and "rstar2cli" in done.stderr:
        pytest.skip("other users can't read this checkout")
    assert done.returncode == 0, done.stderr
    result: list[Any] = json.loads(done.stdout)
    return result


def test_root_gives_every_call_a_user_without_rights() -> None:
    layers, who, shadow, forks = probe(
        0,
        "import os\nos.getuid() not in (0, 65534), os.getgroups()",
        "open('/etc/shadow')",
        "import os, time\nfor _ in range(100):\n    if os.fork() == 0: time.sleep(5)",
    )
    if "user ids" not in layers:
        pytest.skip("user ids can't be changed here")
    assert who[1] == "(True, [])\n"
    assert shadow[0] == "error" and "PermissionError" in shadow[2]
    assert forks[0] == "error" and "BlockingIOError" in forks[2]


def test_a_plain_user_has_namespaces_or_says_that_it_has_not() -> None:
    layers, who, parent, network = probe(
        NOBODY,
        "import os\nos.getuid()",
        "import os\nos.kill(os.getppid(), 9)\nprint('on')",
        "import socket\nsocket.create_connection(('127.0.0.1', 22), timeout=0.5)",
    )
    assert who[1] == f"{NOBODY}\n"
    if "pid namespace" in layers:
        assert parent[:2] == ["ok", "on\n"]
    if "network namespace" in layers:
        assert network[0] == "error"
