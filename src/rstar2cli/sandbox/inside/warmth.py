"""The keeper's handle of one warm process: start it, give it orders, notice its death and replace it."""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
from collections import deque
from collections.abc import Callable
from typing import Any

from rstar2cli.sandbox.inside import census, kernel, tree
from rstar2cli.sandbox.inside.limits import Limits
from rstar2cli.sandbox.inside.loop import Loop
from rstar2cli.sandbox.inside.walls import Walls

_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "PYTHONUTF8": "1",
    "MPLBACKEND": "Agg",
    **{f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB")},
}
"""All that a call finds in its environment, HOME and TMPDIR aside. Threads and hashes are fixed so results repeat."""
_ANSWER_BYTES = 65536
Answer = Callable[[dict[str, Any]], None]
Order = tuple[Callable[[], dict[str, Any]], list[int], list[int], Answer]
"""What to ask (made when it is sent: it tells of the warm process), descriptors to give and to lend, who is told."""
GONE = {"failed": "the warm process ended"}


class Warm:
    """One kind of warm process, started when it is first asked for."""

    def __init__(self, kind: str, boot: Boot, loop: Loop, changed: Callable[[], None]) -> None:
        self.kind = kind
        self.pid = 0
        self.restarts = -1
        self.ready = False
        self.failures: list[str] = []
        self.space = self.resident = 0
        self._boot, self._loop, self._changed = boot, loop, changed
        self._control: socket.socket | None = None
        self._waiting: deque[Order] = deque()
        self._asked: deque[Answer] = deque()

    def fork(self, limits: Limits, fds: list[int], lent: list[int], answer: Answer) -> None:
        """Fork a process with these descriptors; the answer has its ``pid``, or ``failed``.

        ``fds`` are closed here once they are sent; those ``lent`` follow them and stay open.
        """
        self._order(lambda: {**vars(limits), "warm_bytes": self.space}, fds, lent, answer)

    def end(self, pid: int, parent: int, answer: Answer) -> None:
        """Reap a process that has ended, a child of ``parent``; the answer has its ``status``, or ``failed``."""
        if parent != self.pid or self._control is None:
            answer(GONE)
            return
        self._order(lambda: {"end": pid}, [], [], answer)

    def start(self) -> None:
        """Begin to load, if it has not."""
        if self._control is not None:
            return
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control, self.ready = ours, False
        self.restarts += 1
        self.pid = self._boot.start(self.kind, theirs.fileno())
        theirs.close()
        self._loop.watch(ours.fileno(), self._read)

    def kill(self) -> None:
        """End it."""
        if self._control is not None:
            os.kill(self.pid, signal.SIGKILL)

    def _order(self, order: Callable[[], dict[str, Any]], fds: list[int], lent: list[int], answer: Answer) -> None:
        self.start()
        self._waiting.append((order, fds, lent, answer))
        if self.ready:
            self._send()

    def _send(self) -> None:
        assert self._control is not None
        while self._waiting and self._control is not None:
            order, fds, lent, answer = self._waiting.popleft()
            self._asked.append(answer)
            try:
                socket.send_fds(self._control, [json.dumps(order()).encode()], fds + lent)
            except OSError:  # it has died: the end of its socket tells, and answers for it
                return
            finally:
                for fd in fds:
                    os.close(fd)

    def _read(self) -> None:
        assert self._control is not None
        try:
            message = self._control.recv(_ANSWER_BYTES)
        except ConnectionResetError:
            message = b""
        if not message:
            self._died()
            return
        answer = json.loads(message)
        if self.ready:
            self._asked.popleft()(answer)
            return
        self.ready, self.failures = True, answer["ready"]
        self.space, self.resident = census.space_bytes(self.pid), census.resident_bytes(self.pid)
        self._changed()
        self._send()

    def _died(self) -> None:
        """Answer for what it owes. Whoever asks next starts another."""
        assert self._control is not None
        self._loop.close(self._control.detach())
        self._control = None
        was_ready, self.ready = self.ready, False
        asked, self._asked = self._asked, deque()
        waiting: deque[Order] = deque()
        if not was_ready:  # what waited for its start would only wait for another that fails
            waiting, self._waiting = self._waiting, waiting
        self._changed()
        for answer in asked:
            answer(GONE)
        for _, fds, _, answer in waiting:
            for fd in fds:
                os.close(fd)
            answer({"failed": f"the warm process ({self.kind}) does not start"})
        if self._waiting:
            self.start()


class Boot:
    """How warm processes are started: executed clean, inside the tree where there is one."""

    def __init__(self, walls: Walls, python: str, program: str, sources_fd: int, site: str) -> None:
        self._walls, self._python, self._program = walls, python, program
        self._sources_fd, self._site = sources_fd, site

    def start(self, kind: str, control_fd: int) -> int:
        """Fork and execute; the process id."""
        gc.freeze()
        pid = os.fork()
        if pid == 0:
            try:
                self._become(kind, control_fd)
            except BaseException as error:  # noqa: BLE001 - this is a child: whatever it is, end with a word
                os.write(2, f"{kind} warm process: {error!r}\n".encode())
            finally:
                os._exit(1)
        return pid

    def _become(self, kind: str, control_fd: int) -> None:
        kernel.die_with_parent(signal.SIGKILL)
        os.setsid()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        environment = dict(_ENVIRONMENT)
        python = self._python
        jail = self._walls.isolated
        if jail:
            kernel.unshare(kernel.NEWNS | kernel.NEWNET | kernel.NEWIPC | kernel.NEWUTS)
            kernel.set_host_name(b"sandbox")
            kernel.change_root(self._walls.root)
            kernel.mount_tmpfs("/tmp", "size=64m,nr_inodes=4096,mode=700")
            kernel.keep_capabilities()
            python = tree.PYTHON
            if tree.has_own_libraries(""):
                environment["LD_LIBRARY_PATH"] = tree.LIBRARIES
        environment["HOME"] = environment["TMPDIR"] = "/tmp"
        kernel.same_addresses_in_every_run()
        os.chdir("/")
        for fd in (control_fd, self._sources_fd):
            os.set_inheritable(fd, True)
        start = f"jail={jail}, memfd={self._walls.groups is not None}, site={self._site!r}"
        call = f"from rstar2cli.sandbox.inside.warm import main\nmain({control_fd}, {kind!r}, {start})"
        arguments = [python, "-s", "-P", "-S", "-B", "-c", f"{self._program}\n{call}", str(self._sources_fd)]
        os.execve(python, arguments, environment)
