"""The host's handle of one keeper process: start it, talk to it, notice its death."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from typing import IO, Any

from rstar2cli.sandbox import bundle
from rstar2cli.sandbox.inside.frames import Incoming, frame
from rstar2cli.sandbox.inside.limits import Settings

_START_S = 60.0
_END_S = 8.0
_CHUNK = 1 << 18
_RUN = "from rstar2cli.sandbox.inside.keeper import main\nmain({host}, {sources}, program)"


class KeeperFailed(Exception):
    """The keeper did not start; the message says what it last wrote."""


class Keeper:
    """A running keeper. Owned by one thread."""

    def __init__(self, settings: Settings) -> None:
        """Raises :class:`KeeperFailed` if it does not come up."""
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the keeper
        ours, theirs = socket.socketpair()
        self._socket = ours
        self._incoming, self._outgoing = Incoming(), bytearray()
        sources = bundle.sources()
        run = _RUN.format(host=theirs.fileno(), sources=sources)
        program = f"program = {bundle.PROGRAM!r}\nexec(program)\n{run}"
        arguments = [str(sources), json.dumps(dataclasses.asdict(settings))]
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", "-c", program, *arguments],
                env={},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._log,
                pass_fds=[theirs.fileno(), sources],
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            self._log.close()
            raise KeeperFailed(f"can't start {sys.executable}: {error.strerror}") from error
        finally:
            os.close(sources)
            theirs.close()
        self.pid = self._process.pid
        self._pidfd = os.pidfd_open(self.pid)
        found = self._hello()
        ours.setblocking(False)
        self.layers: list[str] = found["layers"]
        """Layers of isolation that it put up."""
        self.missing: dict[str, str] = found["missing"]
        """Layers that this host does not give, with the reason."""
        self.lacking: list[str] = found["lacking"]
        """Of these the ones without which it does not work."""

    @property
    def descriptors(self) -> tuple[int, int]:
        """What to wait at: the socket, and its death, of which the socket may not tell."""
        return self._socket.fileno(), self._pidfd

    @property
    def writing(self) -> bool:
        """Whether there is something left to write."""
        return bool(self._outgoing)

    def send(self, message: dict[str, Any]) -> None:
        """Write a message, or as much of it as goes now."""
        self._outgoing += frame(message)
        self.write()

    def write(self) -> None:
        """Write what is left, as much as goes. A death is noticed in :meth:`read`."""
        with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
            while self._outgoing:
                del self._outgoing[: self._socket.send(self._outgoing[:_CHUNK])]

    def read(self) -> list[dict[str, Any]] | None:
        """The messages that have come; null when it has died."""
        try:
            data = self._socket.recv(_CHUNK)
        except BlockingIOError:
            return [] if self._process.poll() is None else None
        except ConnectionResetError:
            return None
        return self._incoming.feed(data) if data else None

    def last_words(self) -> str:
        """The end of what it wrote to standard error."""
        self._log.seek(0)
        return self._log.read()[-1000:].decode("utf-8", "replace").strip()

    def close(self) -> None:
        """Let it end everything that it runs, and make sure that it ends."""
        self._socket.close()
        try:
            if self._process.wait(_END_S) != 0:
                self.kill()  # it did not end by itself: what it ran is still there
        except subprocess.TimeoutExpired:
            self.kill()
        self._log.close()
        os.close(self._pidfd)

    def kill(self) -> None:
        """End it at once, with the first processes of its namespaces, and so all that it runs."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()

    def _hello(self) -> dict[str, Any]:
        until = time.monotonic() + _START_S
        messages: list[dict[str, Any]] | None = []
        while not messages:
            left = until - time.monotonic()
            if left > 0 and select.select([self._socket], [], [], left)[0]:
                messages = self.read()
                if messages is not None:
                    continue
            words = self.last_words()
            self._socket.close()
            self.kill()
            self._log.close()
            os.close(self._pidfd)
            raise KeeperFailed(f"sandbox keeper: it did not start. {words}".strip())
        return messages[0]
