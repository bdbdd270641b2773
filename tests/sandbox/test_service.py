"""The service and its client, over a real socket."""

from __future__ import annotations

import json
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from rstar2cli.core import drain
from rstar2cli.core.errors import EnvironmentMissing, InputMissing
from rstar2cli.sandbox.build import build_sandbox
from rstar2cli.sandbox.client import HttpSandbox
from rstar2cli.sandbox.config import SandboxConfig, ServeConfig
from rstar2cli.sandbox.local import LocalSandbox
from rstar2cli.sandbox.server import serve


@contextmanager
def serving(**settings: Any) -> Iterator[str]:
    config = ServeConfig(port=0, sandbox=SandboxConfig(workers=2), **settings)
    addresses: queue.Queue[str] = queue.Queue()
    thread = threading.Thread(target=serve, args=(config, lambda address, _: addresses.put(address)))
    thread.start()
    try:
        yield addresses.get(timeout=60)
    finally:
        drain.request("test")
        thread.join(timeout=60)
        drain.reset()
    assert not thread.is_alive()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving(queue=8, body_mib=1) as where:
        yield where


def post(address: str, path: str, body: Any, **headers: str) -> httpx.Response:
    return httpx.post(address + path, json=body, headers=headers, timeout=60)


def test_run(address: str) -> None:
    outcome = post(address, "/v1/run", {"code": "print(input())", "stdin": "é"}).json()
    assert (outcome["kind"], outcome["stdout"]) == ("ok", "é\n")


def test_a_batch_streams_results_as_they_finish(address: str) -> None:
    calls = [{"code": "import time\ntime.sleep(1)\nprint('slow')"}, {"code": "print('quick')"}]
    lines = [json.loads(line) for line in post(address, "/v1/run/batch", {"calls": calls}).text.splitlines()]
    assert [(line["index"], line["outcome"]["stdout"]) for line in lines] == [(1, "quick\n"), (0, "slow\n")]
    assert post(address, "/v1/run/batch", {"calls": []}).text == ""


def test_health(address: str) -> None:
    health = httpx.get(address + "/health").json()
    assert (health["status"], health["workers"], health["capacity"]) == ("ok", 2, 8)


@pytest.mark.parametrize(
    "path, content, headers, status",
    [
        ("/v1/run", b"{", {}, 400),
        ("/v1/run", b"{}", {}, 400),
        ("/v1/run", b'{"code": 1}', {}, 400),
        ("/v1/run", b'{"code": "1", "timeout": 9}', {}, 400),
        ("/v1/run", b'{"code": "1"}', {"content-type": "text/plain"}, 415),
        ("/v1/run", b'{"code": "1"}', {"host": "attacker.example"}, 403),
        ("/v1/run", b'{"code": "' + b"x" * 2**20 + b'"}', {}, 413),
        ("/v1/run/batch", json.dumps({"calls": [{"code": ""}] * 9}).encode(), {}, 413),
        ("/v1/nothing", b"{}", {}, 404),
    ],
)
def test_bad_requests_are_refused(
    address: str, path: str, content: bytes, headers: dict[str, str], status: int
) -> None:
    response = httpx.post(address + path, content=content, headers={"content-type": "application/json", **headers})
    assert response.status_code == status


def test_a_full_queue_says_so_at_once_and_recovers(address: str) -> None:
    slow = {"calls": [{"code": "import time\ntime.sleep(0.5)"}] * 8}
    with httpx.stream("POST", address + "/v1/run/batch", json=slow, timeout=60) as stream:
        refused = post(address, "/v1/run", {"code": "1"})
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert len(list(stream.iter_lines())) == 8
    assert post(address, "/v1/run", {"code": "1"}).status_code == 200


def test_a_client_that_leaves_frees_its_places(address: str) -> None:
    with httpx.stream("POST", address + "/v1/run/batch", json={"calls": [{"code": "1"}] * 8}, timeout=60):
        pass
    until = time.monotonic() + 30
    while httpx.get(address + "/health").json()["pending"] and time.monotonic() < until:
        time.sleep(0.05)
    assert httpx.get(address + "/health").json()["pending"] == 0


def test_a_client_is_a_sandbox(address: str) -> None:
    client = build_sandbox(SandboxConfig(endpoints=(address,)))
    assert isinstance(client, HttpSandbox)
    local = build_sandbox(SandboxConfig(workers=1))
    assert isinstance(local, LocalSandbox)
    try:
        for code, stdin in (("1/0", ""), ("import random\nrandom.random()", ""), ("input()", "x"), ("exit(3)", "")):
            here, there = (box.submit(code, stdin, seed=3).result(timeout=60) for box in (local, client))
            assert (here.kind, here.stdout, here.error) == (there.kind, there.stdout, there.error)
        assert [health.workers for health in client.health()] == [2]
        many = [client.submit(f"print({n})") for n in range(6)]
        assert [future.result().stdout for future in many] == [f"{n}\n" for n in range(6)]
    finally:
        client.close()
        local.close()
    assert client.submit("1").result().kind == "lost"


def test_a_full_service_gives_overloaded(address: str) -> None:
    client = HttpSandbox([address], patience_s=0.0)
    try:
        kinds = {future.result().kind for future in [client.submit("import time\ntime.sleep(0.3)") for _ in range(20)]}
        assert kinds == {"ok", "overloaded"}
    finally:
        client.close()


def test_tokens(tmp_path: Path) -> None:
    with serving(token="secret") as where:
        assert post(where, "/v1/run", {"code": "1"}).status_code == 401
        assert post(where, "/v1/run", {"code": "1"}, Authorization="Bearer wrong").status_code == 401
        assert post(where, "/v1/run", {"code": "1"}, Authorization="Bearer secret").status_code == 200
        with pytest.raises(EnvironmentMissing, match="401"):
            HttpSandbox([where])
        (tmp_path / "token").write_text("secret\n")
        client = build_sandbox(SandboxConfig(endpoints=(where,), token_file=str(tmp_path / "token")))
        assert client.submit("1 + 1").result().stdout == "2\n"
        client.close()


def test_an_absent_token_file_is_named() -> None:
    with pytest.raises(InputMissing, match="token_file absent"):
        build_sandbox(SandboxConfig(endpoints=("http://127.0.0.1:9",), token_file="absent"))


def test_nothing_listening_is_named() -> None:
    with pytest.raises(EnvironmentMissing, match="no sandbox answers"):
        HttpSandbox(["http://127.0.0.1:9"])


def test_a_taken_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        config = ServeConfig(port=taken.getsockname()[1])
        with pytest.raises(EnvironmentMissing, match="can't listen"):
            serve(config, lambda *_: None)


def test_other_machines_need_a_token() -> None:
    with pytest.raises(ValueError, match="set a token"):
        ServeConfig(host="0.0.0.0")
    assert ServeConfig(host="0.0.0.0", token="x").host == "0.0.0.0"


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "rstar2cli", "sandbox-serve", *arguments]


def test_the_command_drains_on_sigterm() -> None:
    with subprocess.Popen(command("--port", "0"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as served:
        assert served.stdout is not None
        address = served.stdout.readline().strip()
        answers: list[httpx.Response] = []
        slow = {"code": "import time\ntime.sleep(1.5)\nprint('finished')"}
        client = threading.Thread(target=lambda: answers.append(post(address, "/v1/run", slow)))
        client.start()
        time.sleep(0.5)
        served.terminate()
        client.join(timeout=30)
        assert answers[0].json()["stdout"] == "finished\n"
        assert served.wait(timeout=30) == 0


def test_the_command_refuses_an_open_address() -> None:
    done = subprocess.run(command("--host", "0.0.0.0"), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and "set a token" in done.stderr
