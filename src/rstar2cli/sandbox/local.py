"""The embedded sandbox: a few warm keeper processes, each call a fork of its own.

What holds: every call has its own process in its own session, with limits on wall time, CPU,
memory, file size, open files and output; it starts with an empty environment in a private
directory that is deleted afterwards; whatever it leaves running is killed, and no call inherits
memory, descriptors or state of another. As root (or where user namespaces are allowed) each
call has a PID namespace, no network and no IPC with others; as root also a user id of its own
without rights, which is what makes the process limit count.

With a mount namespace every file system is read-only for a call, its own small directory aside.

What does NOT hold: there is no file-system jail (a call reads what its user may read, packages
and /proc of the host included), no system-call filter, and memory is limited per process, not
per call. Without root and without user namespaces a call can also write what its user may
write, signal this program and reach the network. Don't run hostile code on a machine that
holds secrets. :attr:`LocalSandbox.layers` says what is there.
"""

from __future__ import annotations

import os
import queue
import shutil
import sys
import tempfile
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from rstar2cli.core import process
from rstar2cli.sandbox.config import SandboxConfig
from rstar2cli.sandbox.decide import outcome_of
from rstar2cli.sandbox.inside.limits import Limits
from rstar2cli.sandbox.keeper import Keeper, KeeperFailed
from rstar2cli.sandbox.outcome import Outcome

_MIB = 1024 * 1024
_FIRST_UID, _UIDS, _SLOTS = 20000, 40000, 64


@dataclass(frozen=True, kw_only=True)
class _Call:
    code: str
    stdin: str
    seed: int
    future: Future[Outcome]


class LocalSandbox:
    """Runs code on this machine; implements :class:`rstar2cli.sandbox.outcome.Sandbox`."""

    def __init__(self, config: SandboxConfig) -> None:
        """Nothing is started before the first call."""
        self.config = config
        self.workers = config.workers or process.cores()
        """Calls run at once."""
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._keepers: dict[int, Keeper] = {}
        self._closed = False
        self._work_dir = ""

    @property
    def layers(self) -> list[str]:
        """Isolation layers of the keepers that run; a call is made if none does yet."""
        if not self._keepers:
            self.submit("").result()
        with self._lock:
            return list(next(iter(self._keepers.values())).layers) if self._keepers else []

    def submit(self, code: str, stdin: str = "", *, seed: int = 0) -> Future[Outcome]:
        """Queue a call. The future never raises for what the code does."""
        future: Future[Outcome] = Future()
        with self._lock:
            if self._closed:
                future.set_result(Outcome(kind="lost", detail="the sandbox is closed"))
                return future
            if not self._threads:
                self._start()
            self._calls.put(_Call(code=code, stdin=stdin, seed=seed, future=future))
        return future

    def close(self) -> None:
        """Kill what runs, give up what waits (`lost`), free everything. Safe to call twice."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            for keeper in self._keepers.values():
                keeper.close()
            for _ in self._threads:
                self._calls.put(None)
        for thread in self._threads:
            thread.join()
        if self._work_dir:
            shutil.rmtree(self._work_dir, ignore_errors=True)

    def _start(self) -> None:
        self._work_dir = tempfile.mkdtemp(prefix="rstar2-sandbox-")
        Path(self._work_dir).chmod(0o711)  # a call's own user must reach its directory, not list the others
        for slot in range(self.workers):
            thread = threading.Thread(target=self._serve, args=(slot,), name=f"sandbox-{slot}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, slot: int) -> None:
        """One slot: its keeper runs one call after another."""
        while (call := self._calls.get()) is not None:
            if not call.future.set_running_or_notify_cancel():
                continue
            try:
                outcome = self._run(slot, call)
            except Exception as error:  # noqa: BLE001 - a bug here must reach whoever waits, not kill the slot
                call.future.set_exception(error)
            else:
                call.future.set_result(outcome)

    def _run(self, slot: int, call: _Call) -> Outcome:
        try:
            keeper = self._keeper(slot)
        except (KeeperFailed, OSError) as error:
            return Outcome(kind="lost" if self._closed else "setup_failed", detail=str(error))
        try:
            return outcome_of(keeper.run(call.code, call.stdin, call.seed), self.config)
        except (KeeperFailed, OSError) as error:
            with self._lock:
                self._keepers.pop(slot, None)
            keeper.close()
            return Outcome(kind="lost", detail=str(error))

    def _keeper(self, slot: int) -> Keeper:
        with self._lock:
            if self._closed:
                raise KeeperFailed("the sandbox is closed")
            if slot in self._keepers:
                return self._keepers[slot]
        keeper = Keeper(self._limits(slot))
        with self._lock:
            if self._closed:
                keeper.close()
                raise KeeperFailed("the sandbox is closed")
            self._keepers[slot] = keeper
        return keeper

    def _limits(self, slot: int) -> Limits:
        config = self.config
        return Limits(
            wall_s=config.wall_s,
            cpu_s=config.cpu_s,
            memory_bytes=config.memory_mib * _MIB,
            output_bytes=config.output_mib * _MIB,
            keep_chars=config.keep_chars,
            file_bytes=config.file_mib * _MIB,
            processes=config.processes,
            isolate=config.isolation == "auto",
            uid=_FIRST_UID + (os.getpid() * _SLOTS + slot) % _UIDS,
            work_dir=self._work_dir,
            packages=[path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")],
        )
