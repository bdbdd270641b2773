"""Bad inputs and outputs at the level of files: each has its error, and nothing is lost or left half done."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rstar2cli.core.errors import DataError, EnvironmentMissing, InputMissing, OutputConflict
from rstar2cli.records import Problem
from rstar2cli.records.codec import encode_line
from rstar2cli.shards.lineage import Lineage
from rstar2cli.shards.manifest import read_journal, read_manifest
from rstar2cli.shards.reader import read_records
from rstar2cli.shards.views import connect
from rstar2cli.shards.writer import open_writer

LINEAGE = Lineage(command=[], config={}, inputs={})


def problem(number: int, prompt: str = "?") -> Problem:
    return Problem(id=f"p{number}", source="s", prompt=prompt, answer=str(number))


def new_writer(out: Path, **options):
    return open_writer(str(out), Problem, lineage=LINEAGE, config={}, **options)


def write(out: Path, count: int, **options) -> Path:
    with new_writer(out, **options) as writer:
        for number in range(count):
            writer.write(problem(number))
    return out


def ids(path: Path, **options) -> list[str]:
    return [record.id for record in read_records([str(path)], Problem, **options)]


@pytest.mark.parametrize("size", [0, 3, 4, 100, -1])
def test_truncated_parquet(tmp_path, size):
    part = write(tmp_path / "d", 50) / "part-00000.parquet"
    data = part.read_bytes()
    part.write_bytes(data[:size])
    with pytest.raises(DataError, match=r"part-00000\.parquet: damaged or cut-off Parquet file") as caught:
        ids(tmp_path / "d")
    assert "--overwrite" in caught.value.hint
    with pytest.raises(DataError, match=r"part-00000\.parquet"):
        connect({"this": [str(tmp_path / "d")]})


def test_flipped_bits_in_a_page(tmp_path):
    part = write(tmp_path / "d", 2000) / "part-00000.parquet"
    data = bytearray(part.read_bytes())
    start = pq.read_metadata(part).row_group(0).column(0).dictionary_page_offset or 4
    for offset in range(start + 40, start + 60):
        data[offset] ^= 0xFF
    part.write_bytes(data)
    with pytest.raises(DataError, match=r"part-00000\.parquet: damaged"):
        ids(tmp_path / "d")


def test_a_part_with_other_rows_than_promised(tmp_path):
    write(tmp_path / "d", 5)
    write(tmp_path / "e", 3)
    (tmp_path / "e" / "part-00000.parquet").replace(tmp_path / "d" / "part-00000.parquet")
    with pytest.raises(DataError, match=r"3 rows, but manifest\.json promises 5"):
        ids(tmp_path / "d")


def test_a_missing_part(tmp_path):
    write(tmp_path / "d", 5, rows_per_part=2)
    (tmp_path / "d" / "part-00001.parquet").unlink()
    with pytest.raises(InputMissing, match=r"part-00001\.parquet is in manifest\.json but not there"):
        ids(tmp_path / "d")


def test_a_directory_without_a_manifest(tmp_path):
    write(tmp_path / "d", 5)
    (tmp_path / "d" / "manifest.json").unlink()
    with pytest.raises(InputMissing, match=r"no manifest\.json: its writer has not finished") as caught:
        ids(tmp_path / "d")
    assert "--resume" in caught.value.hint
    assert len(ids(tmp_path / "d" / "part-*.parquet")) == 5


@pytest.mark.parametrize("text", ["", "{", "[]", '{"kind": "shards/1"}'])
def test_a_damaged_manifest(tmp_path, text):
    write(tmp_path / "d", 1)
    (tmp_path / "d" / "manifest.json").write_text(text)
    with pytest.raises(DataError, match=r"manifest\.json: not readable"):
        ids(tmp_path / "d")


def test_nothing_there(tmp_path):
    (tmp_path / "empty").mkdir()
    for name, wanted in (("none", "no such file"), ("none*", "no file matches"), ("empty", "no data files")):
        with pytest.raises(InputMissing, match=wanted):
            ids(tmp_path / name)


@pytest.mark.parametrize("ending", ["gz", "zst"])
def test_truncated_compressed_files(tmp_path, ending):
    path = write(tmp_path / f"a.jsonl.{ending}", 500)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match="damaged or cut off"):
        ids(path)


def test_a_line_of_20_mb_is_refused_with_its_number_in_bounded_memory(tmp_path):
    with (tmp_path / "a.jsonl").open("wb") as file:
        file.write(encode_line(problem(0)))
        file.write(b'{"kind":"problem/1","id":"' + b"x" * (20 << 20) + b'"}\n')
        file.write(encode_line(problem(2)))
    rejects = []
    assert ids(tmp_path / "a.jsonl", on_reject=rejects.append) == ["p0", "p2"]
    assert str(rejects[0]) == f"{tmp_path}/a.jsonl:2: line of 20 MiB, more than 16 MiB"
    assert len(rejects[0].raw) <= 2000
    with pytest.raises(DataError, match=r"a\.jsonl:2: line of 20 MiB"):
        ids(tmp_path / "a.jsonl")


def test_a_line_far_over_the_limit_is_never_held(tmp_path):
    """A line of 400 MiB (a sparse file of NULs) read with 128 MiB of address space beyond the interpreter's."""
    path = tmp_path / "a.jsonl"
    with path.open("wb") as file:
        file.truncate(400 << 20)
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + encode_line(problem(1)))
    code = (
        "import resource, sys\n"
        "from rstar2cli.records import Problem\n"
        "from rstar2cli.shards.reader import read_records\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * 4096\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + (128 << 20),) * 2)\n"
        "rejects = []\n"
        "found = [r.id for r in read_records([sys.argv[1]], Problem, on_reject=rejects.append)]\n"
        "print(found, rejects[0].reason)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
    assert done.stdout == "['p1'] line of 400 MiB, more than 16 MiB\n", done.stderr


@pytest.mark.parametrize("out", ["d", "a.jsonl", "a.jsonl.gz", "a.parquet"])
def test_an_output_that_cannot_be_written(tmp_path, out):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputConflict, match=r"can't write: (Not a directory|File exists)"):
        new_writer(tmp_path / "file" / out)
    if os.geteuid() != 0:
        (tmp_path / "closed").mkdir(mode=0o500)
        with pytest.raises(OutputConflict, match="can't write: Permission denied"):
            new_writer(tmp_path / "closed" / out)


@pytest.fixture
def small_files():
    """No file of this process may grow beyond 40 kB: a write past it fails as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


def noise(number: int) -> str:
    """Text that does not compress."""
    return os.urandom(2000).hex() + str(number)


@pytest.mark.parametrize("out", ["d", "a.jsonl", "a.jsonl.gz", "a.jsonl.zst", "a.parquet"])
def test_a_disk_that_fills_up(tmp_path, out, small_files):
    with (
        pytest.raises(EnvironmentMissing, match="can't write: File too large") as caught,
        new_writer(tmp_path / out) as writer,
    ):
        for number in range(200):
            writer.write(problem(number, noise(number)))
    assert "make room" in caught.value.hint
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left <= {"d/config.json"}


def test_a_full_disk_keeps_finished_parts(tmp_path, small_files):
    with pytest.raises(EnvironmentMissing), new_writer(tmp_path / "d", rows_per_part=3) as writer:
        for number in range(200):
            writer.write(problem(number, "".join(noise(n) for n in range(1 if number < 6 else 20))))
    assert [part.rows for part in read_journal(tmp_path / "d").parts] == [3, 3]
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    with new_writer(tmp_path / "d", rows_per_part=3, resume=True) as writer:
        assert writer.rows_done == 6
        writer.write(problem(6))
    assert ids(tmp_path / "d") == [f"p{number}" for number in range(7)]


def test_a_really_full_disk(tmp_path):
    target = tmp_path / "small"
    target.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(target)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("may not mount a file system here")
    try:
        with pytest.raises(EnvironmentMissing, match=os.strerror(errno.ENOSPC)), new_writer(target / "d") as writer:
            for number in range(500):
                writer.write(problem(number, noise(number)))
        assert not (target / "d").exists()
    finally:
        subprocess.run(["umount", str(target)], check=True)


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_bad_shards import new_writer, problem
writer = new_writer(Path(sys.argv[1]), rows_per_part=3)
for number in range(8):
    writer.write(problem(number))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_writer_resumes_after_its_last_part(tmp_path):
    here = str(Path(__file__).parent)
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "d"), here], check=False)
    assert done.returncode == -signal.SIGKILL
    assert any(name.startswith(".part-00002") for name in os.listdir(tmp_path / "d"))
    with pytest.raises(InputMissing, match="has not finished"):
        ids(tmp_path / "d")
    with new_writer(tmp_path / "d", rows_per_part=3, resume=True) as writer:
        assert (writer.rows_done, writer.existing("id")) == (6, {f"p{n}" for n in range(6)})
        for number in range(6, 8):
            writer.write(problem(number))
    whole = write(tmp_path / "whole", 8, rows_per_part=3)
    assert read_manifest(tmp_path / "d").parts == read_manifest(whole).parts
    assert set(os.listdir(tmp_path / "d")) == set(os.listdir(whole))


def test_a_crash_between_journal_and_rename_loses_only_that_part(tmp_path):
    """The journal names a part before the part has its name; what is not there, or differs, does not count."""
    with pytest.raises(RuntimeError), new_writer(tmp_path / "d", rows_per_part=2) as writer:
        for number in range(6):
            writer.write(problem(number))
        raise RuntimeError
    (tmp_path / "d" / "part-00002.parquet").unlink()
    write(tmp_path / "other", 2, rows_per_part=2)
    (tmp_path / "other" / "part-00000.parquet").replace(tmp_path / "d" / "part-00001.parquet")
    with new_writer(tmp_path / "d", rows_per_part=2, resume=True) as writer:
        assert writer.rows_done == 2
    assert ids(tmp_path / "d") == ["p0", "p1"]


def test_a_crash_while_a_part_is_replaced_keeps_the_old_or_the_new(tmp_path):
    from rstar2cli.core.errors import Stopped

    with pytest.raises(Stopped), new_writer(tmp_path / "d", rows_per_part=9) as writer:
        writer.write(problem(0))
        raise Stopped("stop")
    old = (tmp_path / "d" / "part-00000.parquet").read_bytes()
    with pytest.raises(Stopped), new_writer(tmp_path / "d", rows_per_part=9, resume=True) as writer:
        writer.write(problem(1))
        raise Stopped("stop")
    journal = json.loads((tmp_path / "d" / ".parts.json").read_bytes())
    assert [part["rows"] for part in journal["parts"]] == [1, 2]
    (tmp_path / "d" / "part-00000.parquet").write_bytes(old)  # the rename never happened
    with new_writer(tmp_path / "d", rows_per_part=9, resume=True) as writer:
        assert writer.rows_done == 1
        writer.write(problem(1))
    assert ids(tmp_path / "d") == ["p0", "p1"]


def test_a_closed_pipe_is_a_broken_pipe_for_the_writer(tmp_path):
    here = str(Path(__file__).parent)
    code = (
        f"import sys; sys.path.insert(0, {here!r})\n"
        "from test_bad_shards import new_writer, problem\n"
        "try:\n"
        "    with new_writer('-') as writer:\n"
        "        while True: writer.write(problem(1))\n"
        "except BrokenPipeError:\n"
        "    import os; os._exit(9)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout.readline() == encode_line(problem(1))
    process.stdout.close()
    assert process.wait(timeout=60) == 9


def test_records_flow_through_a_pipe_as_they_are_written(tmp_path):
    """A reader sees the first record while the writer is still at work."""
    code = (
        "import sys\n"
        "from rstar2cli.records import Problem\n"
        "from rstar2cli.shards.reader import read_records\n"
        "for record in read_records(['-'], Problem): print(record.id, flush=True)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdin.write(encode_line(problem(1)))
    process.stdin.flush()
    begun = time.monotonic()
    assert process.stdout.readline() == b"p1\n"
    assert time.monotonic() - begun < 60
    process.stdin.close()
    assert process.wait(timeout=60) == 0
