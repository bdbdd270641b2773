from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

Serving = Callable[..., AbstractContextManager[str]]


@contextmanager
def _serving(*, host: str = "127.0.0.1", token: str = "", **settings: object) -> Iterator[str]:
    """A service in a process of its own; a double underscore is a dot (``sandbox__wall_s=1``)."""
    sets = {"sandbox.workers": 2} | {key.replace("__", "."): value for key, value in settings.items()}
    command = [sys.executable, "-m", "rstar2cli", "sandbox-serve", "--port", "0", "--host", host]
    for key, value in sets.items():
        command += ["--set", f"{key}={','.join(value) if isinstance(value, tuple) else value}"]
    environment = {**os.environ, **({"RSTAR2_TOKEN": token} if token else {})}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as served:
        assert served.stdout is not None
        try:
            yield served.stdout.readline().strip()
        finally:
            served.terminate()
            assert served.wait(60) == 0


@pytest.fixture(scope="session")
def serving() -> Serving:
    """Starts a service: a context manager of its address."""
    return _serving


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A service of two workers with room for 64 calls."""
    with _serving(queue=64, batch=600, body_mib=1, read_s=5.0) as where:
        yield where
