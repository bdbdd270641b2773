"""The service and its client, over a real socket."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import httpx
import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.requests import Request

from rstar2cli.core.errors import EnvironmentMissing, InputMissing
from rstar2cli.sandbox.app import create_app
from rstar2cli.sandbox.build import build_sandbox
from rstar2cli.sandbox.client import HttpSandbox
from rstar2cli.sandbox.config import SandboxConfig, ServeConfig
from rstar2cli.sandbox.gate import Gate
from rstar2cli.sandbox.local import LocalSandbox
from rstar2cli.sandbox.server import serve


@pytest.fixture(scope="module")
def address(serving: Any) -> Iterator[str]:
    with serving(queue=8, body_mib=1, read_s=2.0) as where:
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


def test_tokens(serving: Any, tmp_path: Path) -> None:
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
        while not httpx.get(address + "/health").json()["pending"]:
            time.sleep(0.02)
        served.terminate()
        client.join(timeout=30)
        assert answers[0].json()["stdout"] == "finished\n"
        assert served.wait(timeout=30) == 0


def test_the_command_refuses_an_open_address() -> None:
    done = subprocess.run(command("--host", "0.0.0.0"), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and "set a token" in done.stderr


def test_a_session_keeps_its_state_and_runs_each_cell_once(address: str) -> None:
    opened = post(address, "/v1/sessions", {"seed": 5})
    session = opened.json()["session"]
    assert opened.status_code == 201 and opened.headers["x-sandbox-session"] == session and len(session) >= 32
    path = f"/v1/sessions/{session}/cells"
    assert post(address, path, {"code": "n = 1\nn", "sequence": 0}).json()["stdout"] == "1\n"
    for _ in range(2):
        again = post(address, path, {"code": "n += 1\nn", "sequence": 1})
        assert again.json()["stdout"] == "2\n" and again.headers["x-sandbox-session"] == session
    assert httpx.delete(f"{address}/v1/sessions/{session}").status_code == 204
    assert post(address, path, {"code": "n", "sequence": 2}).json()["kind"] == "lost"
    assert post(address, "/v1/sessions/unknown/cells", {"code": "1", "sequence": 0}).json()["kind"] == "lost"


def test_waiting_is_told_apart_from_running(address: str) -> None:
    calls = [{"code": "import time\ntime.sleep(0.4)"}] * 6
    lines = [json.loads(line)["outcome"] for line in post(address, "/v1/run/batch", {"calls": calls}).text.splitlines()]
    assert all(0.35 < line["seconds"] < 3 for line in lines)
    assert max(line["waited_seconds"] for line in lines) > 0.7 > min(line["waited_seconds"] for line in lines)


def test_a_call_may_ask_for_less(address: str) -> None:
    outcome = post(address, "/v1/run", {"code": "while True: pass", "wall_s": 0.3}).json()
    assert (outcome["kind"], outcome["limit"]) == ("timeout", "0.3 s")


def test_metrics_count_what_happened(serving: Any) -> None:
    with serving() as where:
        post(where, "/v1/run", {"code": "1"})
        post(where, "/v1/run", {"code": "1/0"})
        post(where, "/v1/run", {})
        text = httpx.get(where + "/metrics").text
    for line in (
        'rstar2_sandbox_calls_total{outcome="ok"} 1.0',
        'rstar2_sandbox_calls_total{outcome="error"} 1.0',
        'rstar2_sandbox_refused_total{status="400"} 1.0',
        "rstar2_sandbox_run_seconds_count 2.0",
        "rstar2_sandbox_pending 0.0",
    ):
        assert line in text.splitlines()


def test_the_document_describes_every_route(address: str) -> None:
    told = httpx.get(address + "/openapi.json").json()
    app = create_app(NoSandbox(), ServeConfig())
    routes = {(route.path, method) for route in app.routes for method in route.methods - {"HEAD"}}  # type: ignore[attr-defined]
    assert routes == {(path, method.upper()) for path, methods in told["paths"].items() for method in methods}
    schemas = told["components"]["schemas"]
    used = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(told)))
    assert used and used <= set(schemas)
    for name in ("CallRequest", "Outcome", "Submission", "RunCode"):
        jsonschema.Draft202012Validator.check_schema(schemas[name] | {"components": told["components"]})


class NoSandbox:
    """Enough of a sandbox to build the application."""

    workers = 1
    layers: ClassVar[list[str]] = []
    missing: ClassVar[dict[str, str]] = {}

    def stats(self) -> dict[str, int]:
        return dict.fromkeys(("running", "waiting", "warm_processes", "restarts", "sessions"), 0)


@pytest.mark.parametrize(
    "settings, host, status",
    [
        ({"host": "0.0.0.0", "allow": ("10.0.0.0/8",)}, "127.0.0.1", 200),
        ({"host": "0.0.0.0", "allow": ("10.0.0.0/8",)}, "attacker.example", 403),
        ({"host": "0.0.0.0", "allow": ("10.0.0.0/8",), "names": ("lb.example",)}, "lb.example", 200),
        ({}, "localhost", 200),
        ({}, "10.0.0.1", 403),
    ],
)
def test_whose_names_are_ours(serving: Any, settings: dict[str, Any], host: str, status: int) -> None:
    with serving(**settings) as where:
        where = where.replace("0.0.0.0", "127.0.0.1")
        assert post(where, "/v1/run", {"code": "1"}, Host=host).status_code == status


def test_networks_are_checked() -> None:
    gate = Gate(ServeConfig(host="0.0.0.0", allow=("10.1.0.0/16", "fd00::/8")))
    known = {peer: gate._known(request_from(peer)) for peer in ("10.1.2.3", "10.2.0.1", "fd00::1", "127.0.0.1", "x")}
    assert known == {"10.1.2.3": True, "10.2.0.1": False, "fd00::1": True, "127.0.0.1": True, "x": False}
    assert gate._known(request_from("::ffff:10.1.2.3"))
    with pytest.raises(ValueError, match="does not appear to be"):
        ServeConfig(host="0.0.0.0", allow=("ten",))


def request_from(peer: str) -> Request:
    return Request({"type": "http", "client": (peer, 1), "headers": []})


def test_half_a_request_is_dropped(address: str) -> None:
    host, port = address.removeprefix("http://").split(":")
    for half in (b"POST /v1/run HT", b"POST /v1/run HTTP/1.1\r\nHost: localhost\r\nX: "):
        with socket.create_connection((host, int(port)), timeout=30) as slow:
            slow.sendall(half)
            assert slow.recv(1000) == b""
    with socket.create_connection((host, int(port)), timeout=30) as slow:
        slow.sendall(
            b"POST /v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
        )
        assert slow.recv(1000).startswith(b"HTTP/1.1 408")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    ["code", "stdin", "seed", "calls", "sequence", "type", "solution", "submissions", "language", "files"]
)
PATHS = st.sampled_from(
    [
        "/v1/run",
        "/v1/run/batch",
        "/v1/sessions/x/cells",
        "/run",
        "/run/batch",
        "/judge/long-batch",
        "/run_code",
        "/metrics",
    ]
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    path=PATHS,
    method=st.sampled_from(["POST", "POST", "POST", "PUT", "GET", "DELETE", "OPTIONS"]),
    body=st.binary(max_size=60) | st.dictionaries(KEYS, JSON, max_size=4).map(lambda value: json.dumps(value).encode()),
    header=st.text(st.characters(min_codepoint=33, max_codepoint=255), max_size=10),
)
def test_no_request_breaks_it(address: str, path: str, method: str, body: bytes, header: str) -> None:
    headers = {"content-type": "application/json", "x-odd": header.encode("latin-1")}
    response = httpx.request(method, address + path, content=body, headers=headers, timeout=60)
    assert response.status_code in (200, 400, 403, 405, 413, 415, 503)
    assert httpx.get(address + "/health").status_code == 200
