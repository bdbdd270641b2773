"""Workers that check answers stand behind walls: what they compare was written by a model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from rstar2cli.answers.policy import Policy
from rstar2cli.grading.workers import Workers

PROGRAM = """
import json, os, socket, sys
from rstar2cli.sandbox.inside.confine import confine
missing = confine([os.path.dirname(os.__file__)])
found = {"missing": missing, "uid": os.getuid(), "root": sorted(os.listdir("/"))}
for name, attempt in {
    "file": lambda: open("/etc/passwd"),
    "source": lambda: open(sys.argv[1]),
    "write": lambda: open(os.path.dirname(os.__file__) + "/x", "w"),
    "network": lambda: socket.socket(),
    "signal": lambda: os.kill(os.getppid(), 0),
    "mount": lambda: os.chroot("/"),
}.items():
    try:
        attempt()
        found[name] = True
    except OSError:
        found[name] = False
import fractions  # what stays can still be loaded
print(json.dumps(found))
"""


def test_a_confined_process_reaches_only_what_it_reads() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, __file__], capture_output=True, text=True, check=True, start_new_session=True
    )
    found = json.loads(done.stdout)
    if "file jail" not in found["missing"]:
        assert not found["file"] and not found["source"] and not found["write"]
        assert "etc" not in found["root"] and "proc" not in found["root"]
    if "seccomp" not in found["missing"]:
        assert not found["network"] and not found["mount"]
    assert not found["signal"] or os.geteuid() != 0
    assert found["uid"] != 0 or os.geteuid() != 0


def test_the_workers_are_confined() -> None:
    with Workers(1) as workers:
        assert workers.compare(r"\frac{1}{2}", "0.5", None, Policy()).verdict == "correct"
        assert workers._nursery is not None
        nursery = workers._nursery._process.pid
        (worker,) = Path(f"/proc/{nursery}/task/{nursery}/children").read_text().split()
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{worker}/status").read_text().splitlines())
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
        assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0
