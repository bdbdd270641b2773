"""Run every attack against a sandbox on this host, and say what held."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import rstar2cli
from rstar2cli.sandbox.attacks import ATTACKS, BREACH, Attack
from rstar2cli.sandbox.config import SandboxConfig
from rstar2cli.sandbox.local import LocalSandbox
from rstar2cli.sandbox.outcome import Outcome

_PATIENT_S, _HASTY_S, _RESULT_S = 30.0, 1.0, 150.0
Result = Literal["held", "failed", "not applicable"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What became of one attack."""

    attack: str
    """Its name."""
    result: Result
    """Whether it was held."""
    why: str
    """What it did, where it was not held; why it does not apply."""


class Range:
    """A place to attack: two sandboxes, and around them what must not be reached or touched."""

    def __init__(self, config: SandboxConfig | None = None) -> None:
        """``config``: the sandbox to try; its time limits are replaced, so that a busy machine changes nothing."""
        config = config or SandboxConfig()
        self._directory = tempfile.TemporaryDirectory(prefix="rstar2-check-")
        self._token = secrets.token_hex(8)
        self._secret = Path(self._directory.name) / "secret.txt"
        self._secret.write_text(self._token)
        Path(self._directory.name).chmod(0o777)
        self._secret.chmod(0o666)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._abstract = socket.socket(socket.AF_UNIX)
        self._abstract_name = f"rstar2-check-{self._token}"
        self._abstract.bind(f"\0{self._abstract_name}")
        self._abstract.listen()
        self._victim = subprocess.Popen(["sleep", "600"], start_new_session=True)
        self._patient = LocalSandbox(_replace(config, _PATIENT_S))
        self._hasty = LocalSandbox(_replace(config, _HASTY_S))

    @property
    def layers(self) -> list[str]:
        """Layers of the sandboxes."""
        return self._patient.layers

    def attack(self, attack: Attack) -> Finding:
        """Run one attack."""
        if attack.needs and attack.needs not in self.layers:
            why = f"no {attack.needs}: {self._patient.missing.get(attack.needs, 'not in use')}"
            return Finding(attack=attack.name, result="not applicable", why=why)
        mark = f"rstar2-mark-{secrets.token_hex(6)}"
        box = self._hasty if attack.hasty else self._patient
        outcome = box.submit(self._aim(attack.code, mark)).result(_RESULT_S)
        why = self._fault(attack, outcome, mark)
        if not why and attack.then:
            after = box.submit(attack.then).result(_RESULT_S)
            if BREACH in after.stdout or after.kind != "ok":
                why = f"the next call: {after.kind} {after.stdout.strip()} {after.error or ''}".strip()
        if not why:
            after = box.submit("print('alive')").result(_RESULT_S)
            if (after.kind, after.stdout) != ("ok", "alive\n"):
                why = f"an honest call afterwards: {after.kind} {after.detail or ''}".strip()
        return Finding(attack=attack.name, result="failed" if why else "held", why=why)

    def close(self) -> None:
        """Take everything away."""
        self._patient.close()
        self._hasty.close()
        self._victim.kill()
        self._victim.wait()
        self._listener.close()
        self._abstract.close()
        self._directory.cleanup()

    def _aim(self, code: str, mark: str) -> str:
        words = {
            "SECRET": str(self._secret),
            "TOKEN": self._token,
            "PORT": str(self._listener.getsockname()[1]),
            "ABSTRACT": self._abstract_name,
            "PIDS": f"{os.getpid()}, {self._victim.pid}",
            "MARK": mark,
            "PATHS": " ".join(path.encode().hex() for path in self._hidden_paths()),
        }
        for word, value in words.items():
            code = code.replace(f"@{word}@", value)
        return code

    def _hidden_paths(self) -> list[str]:
        """Paths of the host that code must find nowhere."""
        source = str(Path(rstar2cli.__file__).parent)
        return [source, str(self._secret), *([sys.prefix] if sys.prefix != "/usr" else [])]

    def _fault(self, attack: Attack, outcome: Outcome, mark: str) -> str:
        """What went wrong; empty if it was held."""
        if BREACH in outcome.stdout:
            return outcome.stdout[outcome.stdout.index(BREACH) :].strip()[:200]
        if outcome.kind not in attack.kinds:
            return f"{outcome.kind}: {outcome.error or outcome.detail or outcome.stderr or outcome.signal}"[:200]
        if attack.stdout is not None and outcome.stdout != attack.stdout:
            return f"the output was {outcome.stdout[:100]!r}"
        if _running(mark):
            return "a process of it is still there"
        if self._victim.poll() is not None:
            return "it killed a process outside"
        if self._secret.read_text() != self._token:
            return "it wrote to a file outside"
        return ""


@contextlib.contextmanager
def laid_out(config: SandboxConfig | None = None) -> Iterator[Range]:
    """A range for as long as it is needed."""
    place = Range(config)
    try:
        yield place
    finally:
        place.close()


def check(config: SandboxConfig | None = None) -> Iterator[Finding]:
    """Run all attacks, one after another."""
    with laid_out(config) as place:
        for attack in ATTACKS:
            yield place.attack(attack)


def _replace(config: SandboxConfig, wall_s: float) -> SandboxConfig:
    values = {**vars(config), "workers": 1, "wall_s": wall_s, "cpu_s": _PATIENT_S, "sessions": 1, "endpoints": ()}
    return SandboxConfig(**values)


def _running(mark: str) -> bool:
    """Whether a process with this argument is running anywhere."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # it ended meanwhile, or is another user's
                if mark.encode() in (entry / "cmdline").read_bytes():
                    return True
    return False
