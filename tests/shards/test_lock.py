"""One writer at a time; a dead one blocks nobody."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from shard_helpers import ids, problems, write, writer

from rstar2cli.core.errors import OutputConflict
from rstar2cli.shards.lock import OutputLock

HOLDER = """
import sys, time
from pathlib import Path
from rstar2cli.shards.lock import OutputLock
lock = OutputLock(Path(sys.argv[1]), "out")
print("held", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("out", ["d", "a.jsonl", "a.parquet"])
def test_a_second_writer_is_refused(tmp_path, out):
    with writer(tmp_path / out) as first:
        first.write(problems(1)[0])
        with pytest.raises(OutputConflict, match=f"being written by another process .process {os.getpid()}"):
            writer(tmp_path / out, resume=True)
    assert ids(tmp_path / out) == ["p0"]
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".lock")]


def test_the_lock_of_a_killed_process_is_free(tmp_path):
    path = tmp_path / "d" / ".lock"
    path.parent.mkdir()
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(OutputConflict, match=f"process {holder.pid}"):
        OutputLock(path, "out")
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert path.exists()
    assert ids(write(tmp_path / "d", problems(1))) == ["p0"]


FORKER = """
import os, sys, time
from pathlib import Path
from rstar2cli.shards.lock import OutputLock
lock = OutputLock(Path(sys.argv[1]), "out")
child = os.fork()
if child == 0:
    time.sleep(60)
    os._exit(0)
print(child, flush=True)
time.sleep(60)
"""


def test_a_child_that_outlives_a_killed_holder_blocks_nobody(tmp_path):
    path = tmp_path / ".lock"
    holder = subprocess.Popen([sys.executable, "-c", FORKER, str(path)], stdout=subprocess.PIPE, text=True)
    child = int(holder.stdout.readline())
    try:
        holder.kill()
        holder.wait()
        lock = OutputLock(path, "out")
        with pytest.raises(OutputConflict, match=f"process {os.getpid()}"):
            OutputLock(path, "out")
        lock.release()
    finally:
        os.kill(child, signal.SIGKILL)


def test_release_is_repeatable(tmp_path):
    lock = OutputLock(tmp_path / ".lock", "out")
    lock.release()
    lock.release()
    OutputLock(tmp_path / ".lock", "out").release()
