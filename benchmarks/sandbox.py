"""The sandbox measured: calls a second, waiting, CPU, beside a new interpreter per call and any service given by URL.

    python benchmarks/sandbox.py [--seconds 5] [--in-flight 8] [--url DIALECT=URL ...] [--json FILE]
    python benchmarks/sandbox.py --soak 45000 [--in-flight 2048]
    python benchmarks/sandbox.py --notebook

The first runs every workload on every way of running it, one after the other: a new interpreter per
call, the embedded pool, a service of ours over HTTP (started here), and those that ``--url`` names
(dialects: ``rstar2``, ``code-judge``, ``fusion``). CPU is that of every process under this one, the
client included, for a service elsewhere of the client alone. Each call prints a text of its own;
``wrong`` counts answers that are another's or none.

``--soak`` sends that many mixed calls to a service of ours and looks at what it leaves: memory over
time, descriptors, processes, control groups, mounts, files. ``--notebook`` compares 20 cells of one
session with 20 calls, and with replaying all cells before each.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import httpx

from rstar2cli.sandbox.client import HttpSandbox
from rstar2cli.sandbox.config import SandboxConfig
from rstar2cli.sandbox.local import LocalSandbox
from rstar2cli.sandbox.outcome import Outcome

WORKLOADS = {
    "print": "print({token})",
    "numpy": "import numpy as np\na = np.array([[3., 1.], [1., 2.]])\nx = np.linalg.solve(a, [9, 8])\n"
    "assert abs(x[0] - 2) < 1e-9\nprint({token})",
    "sympy": "from sympy import symbols, solve\nx = symbols('x')\nr = solve(x**2 - 5*x + 6, x)\n"
    "assert r == [2, 3]\nprint({token})",
}
_TICK = os.sysconf("SC_CLK_TCK")


class Runner(Protocol):
    """A way of running code."""

    def submit(self, code: str) -> Future[Any]:
        """Queue a call; its result has ``kind`` and ``stdout``."""
        ...


class FreshInterpreters:
    """A new interpreter per call, as many at once as are asked for."""

    def submit(self, code: str) -> Future[Outcome]:
        """Start a thread that waits for the process."""
        future: Future[Outcome] = Future()

        def run() -> None:
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
            future.set_result(Outcome(kind="ok" if done.returncode == 0 else "error", stdout=done.stdout))

        threading.Thread(target=run).start()
        return future


class Elsewhere:
    """A service of another dialect, by its own requests."""

    def __init__(self, dialect: str, url: str, in_flight: int) -> None:
        self.dialect, self.url = dialect, url.rstrip("/")
        self.client = httpx.Client(timeout=120, limits=httpx.Limits(max_connections=in_flight))

    def submit(self, code: str) -> Future[Outcome]:
        """Send it from a thread of its own."""
        future: Future[Outcome] = Future()
        threading.Thread(target=lambda: future.set_result(self._run(code))).start()
        return future

    def _run(self, code: str) -> Outcome:
        if self.dialect == "code-judge":
            found = self.client.post(f"{self.url}/run", json={"type": "python", "solution": code}).json()
            return Outcome(kind="ok" if found["run_success"] else "error", stdout=found["stdout"] or "")
        found = self.client.post(f"{self.url}/run_code", json={"language": "python", "code": code}).json()
        ran = found["run_result"] or {}
        return Outcome(kind="ok" if found["status"] == "Success" else "error", stdout=ran.get("stdout") or "")


@contextmanager
def service(**settings: object) -> Iterator[tuple[str, int]]:
    """A service of ours in a process of its own: (address, process id)."""
    sets = [part for key, value in settings.items() for part in ("--set", f"{key.replace('__', '.')}={value}")]
    command = [sys.executable, "-m", "rstar2cli", "sandbox-serve", "--port", "0", "-q", *sets]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip(), process.pid
        finally:
            process.terminate()
            process.wait(60)


def family(root: int) -> list[int]:
    """A process and all that descend from it."""
    found, todo = [], [root]
    while todo:
        pid = todo.pop()
        found.append(pid)
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                todo += [int(child) for child in children.read_text().split()]
            except OSError:
                continue
    return found


def cpu_seconds(root: int) -> float:
    """CPU time of a process, its descendants, and those that it has waited for."""
    total = 0
    for pid in family(root):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(int(fields[at]) for at in (11, 12, 13, 14))
    return total / _TICK


def memory_mib(root: int) -> float:
    """Proportional share of memory of a process and its descendants; shared pages count once."""
    total = 0
    for pid in family(root):
        try:
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
        except OSError:
            continue
    return total / 1024


def descriptors(pid: int) -> int:
    """Open descriptors of a process."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def load(runner: Runner, code: Callable[[int], str], in_flight: int, enough: Callable[[int], bool]) -> dict[str, Any]:
    """Keep so many calls in flight until ``enough(calls begun)``; what became of them."""
    done: queue.SimpleQueue[tuple[int, float, Any]] = queue.SimpleQueue()
    kinds: Counter[str] = Counter()
    seconds, waited, ran = [], [], []
    wrong = begun = running = 0
    start = time.monotonic()

    def send() -> None:
        nonlocal begun, running
        token, at = begun, time.monotonic()
        begun, running = begun + 1, running + 1
        future = runner.submit(code(token))
        future.add_done_callback(lambda future: done.put((token, time.monotonic() - at, future)))

    while running < in_flight and not enough(begun):
        send()
    while running:
        token, took, future = done.get()
        running -= 1
        outcome = future.result()
        kinds[outcome.kind] += 1
        wrong += outcome.kind == "ok" and outcome.stdout != f"{token}\n"
        seconds.append(took)
        waited.append(outcome.waited_seconds)
        ran.append(outcome.seconds)
        if not enough(begun):
            send()
    wall = time.monotonic() - start
    cuts = statistics.quantiles(seconds, n=100) if len(seconds) > 1 else [seconds[0]] * 99
    return {
        "calls": len(seconds), "seconds": wall, "per_second": len(seconds) / wall, "p50_ms": cuts[49] * 1e3,
        "p99_ms": cuts[98] * 1e3, "waited_ms": statistics.fmean(waited) * 1e3, "ran_ms": statistics.fmean(ran) * 1e3,
        "failed": sum(count for kind, count in kinds.items() if kind != "ok"), "wrong": wrong, "kinds": dict(kinds),
    }  # fmt: skip


def timed(runner: Runner, workload: str, in_flight: int, seconds: float, root: int) -> dict[str, Any]:
    """One workload for so long, with the CPU that it took."""
    template = WORKLOADS[workload]
    runner.submit(template.format(token=0)).result()
    until, before = time.monotonic() + seconds, cpu_seconds(root)
    row = load(runner, lambda token: template.format(token=token), in_flight, lambda _: time.monotonic() > until)
    return row | {"cpu_ms": (cpu_seconds(root) - before) / row["calls"] * 1e3}


def compare(seconds: float, in_flight: int, urls: list[str]) -> list[dict[str, Any]]:
    """Every workload on every way, one after the other."""
    rows = []

    def measure(name: str, runner: Runner) -> None:
        for workload in WORKLOADS:
            row = {"way": name, "workload": workload} | timed(runner, workload, in_flight, seconds, os.getpid())
            rows.append(row)
            print(
                f"{name:24s} {workload:6s} {row['per_second']:7.1f}/s  CPU {row['cpu_ms']:6.2f} ms"
                f"  p50 {row['p50_ms']:7.1f}"
                f"  p99 {row['p99_ms']:7.1f}  waited {row['waited_ms']:6.1f}  ran {row['ran_ms']:6.1f} ms"
                f"  failed {row['failed']}  wrong {row['wrong']}",
                flush=True,
            )

    def warmed(runner: Runner) -> Runner:
        for template in WORKLOADS.values():
            runner.submit(template.format(token=0)).result()
        return runner

    measure("new interpreter", FreshInterpreters())
    local = LocalSandbox(SandboxConfig())
    warmed(local)
    measure("embedded", local)
    local.close()
    with service() as (address, _):
        client = HttpSandbox([address])
        warmed(client)
        measure("service over HTTP", client)
        client.close()
    for text in urls:
        dialect, _, url = text.partition("=")
        if dialect == "rstar2":
            client = HttpSandbox([url])
            measure(url, client)
            client.close()
        else:
            measure(f"{dialect} {url}", Elsewhere(dialect, url, in_flight))
    return rows


def left_behind() -> dict[str, int]:
    """What a service may leave on this machine."""
    groups = [path for path in Path("/sys/fs/cgroup").rglob("*") if path.is_dir() and "rstar2" in path.name]
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if "rstar2" in line]
    files = [path for path in Path(tempfile.gettempdir()).iterdir() if "rstar2" in path.name]
    return {"cgroups": len(groups), "mounts": len(mounts), "files": len(files)}


def soak(calls: int, in_flight: int) -> dict[str, Any]:
    """Mixed calls from one client; what they became, and what the service is like before and after."""
    mix = ["print", "print", "print", "numpy", "print", "print", "sympy", "print"]
    before = left_behind()
    with service() as (address, pid):
        client = HttpSandbox([address])
        for workload in WORKLOADS:
            client.submit(WORKLOADS[workload].format(token=0)).result()
        time.sleep(2)
        began = {"fds": descriptors(pid), "processes": len(family(pid)), "mib": memory_mib(pid)}
        memory: list[float] = []
        over = threading.Event()

        def watch() -> None:
            while not over.wait(5):
                memory.append(memory_mib(pid))

        watcher = threading.Thread(target=watch)
        watcher.start()
        row = load(
            client,
            lambda token: WORKLOADS[mix[token % len(mix)]].format(token=token),
            in_flight,
            lambda begun: begun >= calls,
        )
        over.set()
        watcher.join()
        client.close()
        time.sleep(3)
        ended = {"fds": descriptors(pid), "processes": len(family(pid)), "mib": memory_mib(pid)}
    row |= {"before": began, "after": ended, "most_mib": max(memory, default=0.0)}
    row |= {"left": {name: count - before[name] for name, count in left_behind().items()}}
    print(json.dumps(row, indent=1))
    return row


def notebook() -> dict[str, float]:
    """20 cells of one session, 20 calls, and 20 calls that each replay the cells before."""
    cells = [f"total = {'total + ' if at else ''}{at}\ntotal" for at in range(20)]
    with service() as (address, _):
        client = HttpSandbox([address])
        client.submit("1").result()

        def session() -> None:
            opened = client.open_session().result()
            for at, cell in enumerate(cells):
                assert client.run_cell(opened, cell, sequence=at).result().kind == "ok"
            client.close_session(opened)

        def calls() -> None:
            for _ in cells:
                assert client.submit("total = 1\ntotal").result().kind == "ok"

        def replay() -> None:
            for at in range(len(cells)):
                assert client.submit("\n".join(cells[: at + 1])).result().kind == "ok"

        def ms(work: Callable[[], None]) -> float:
            rounds = []
            for _ in range(9):
                start = time.perf_counter()
                work()
                rounds.append(time.perf_counter() - start)
            return statistics.median(rounds) * 1e3

        row = {"session_ms": ms(session), "calls_ms": ms(calls), "replay_ms": ms(replay)}
        client.close()
    print(f"20 cells: session {row['session_ms']:.0f} ms, 20 calls {row['calls_ms']:.0f} ms, "
          f"replay {row['replay_ms']:.0f} ms; session / calls = {row['session_ms'] / row['calls_ms']:.2f}")  # fmt: skip
    return row


def first_answer() -> float:
    """Seconds from starting the service to its first answer over HTTP."""
    start = time.monotonic()
    with service() as (address, _):
        found = httpx.post(f"{address}/v1/run", json={"code": "print(1)"}, timeout=60).json()
        assert found["stdout"] == "1\n"
        took = time.monotonic() - start
    print(f"start to first answer: {took:.2f} s")
    return took


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each workload on each way")
    parser.add_argument("--in-flight", type=int, help="calls at once [8; 2048 for --soak]")
    parser.add_argument("--url", action="append", default=[], metavar="DIALECT=URL")
    parser.add_argument("--soak", type=int, metavar="CALLS")
    parser.add_argument("--notebook", action="store_true")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    result: Any
    if asked.soak:
        result = soak(asked.soak, asked.in_flight or 2048)
    elif asked.notebook:
        result = notebook()
    else:
        result = {"first_answer_s": first_answer(), "rows": compare(asked.seconds, asked.in_flight or 8, asked.url)}
    if asked.json:
        asked.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
