"""Several services behind one client, and behind the real HAProxy, one of them dying."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from rstar2cli.core.errors import EnvironmentMissing
from rstar2cli.sandbox.client import HttpSandbox
from rstar2cli.sandbox.haproxy import configuration
from rstar2cli.sandbox.outcome import SandboxRefused


@contextmanager
def process(*options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    command = [sys.executable, "-m", "rstar2cli", "sandbox-serve", "--set", "sandbox.workers=1", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as served:
        assert served.stdout is not None
        try:
            yield served.stdout.readline().strip(), served
        finally:
            served.kill()


def test_a_service_killed_under_load_costs_no_call_and_mixes_none_up() -> None:
    with process("--port", "0") as (first, served), process("--port", "0") as (second, _):
        client = HttpSandbox([first, second])
        try:
            calls = [client.submit(f"import time\ntime.sleep(0.02)\nprint({n})") for n in range(120)]
            calls[10].result(timeout=60)
            served.send_signal(signal.SIGKILL)
            assert [call.result(timeout=60).stdout for call in calls] == [f"{n}\n" for n in range(120)]
        finally:
            client.close()


def test_one_that_comes_back_is_used_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with process("--port", "0") as (other, _):
        client = HttpSandbox([f"http://127.0.0.1:{port}", other])
        try:
            assert client.submit("print(1)").result(timeout=60).stdout == "1\n"
            with process("--port", str(port)) as (back, _):
                until = time.monotonic() + 60
                while not _handled(back) and time.monotonic() < until:
                    for call in [client.submit("1") for _ in range(8)]:
                        assert call.result(timeout=60).kind == "ok"
                assert _handled(back)
        finally:
            client.close()


def _handled(address: str) -> bool:
    return 'rstar2_sandbox_calls_total{outcome="ok"}' in httpx.get(f"{address}/metrics").text


def test_a_call_is_lost_only_when_all_are_down_and_says_so() -> None:
    with process("--port", "0") as (first, one), process("--port", "0") as (second, two):
        client = HttpSandbox([first, second])
        try:
            session = client.open_session().result(timeout=60)
            assert client.run_cell(session, "x = 1\nx", sequence=0).result(timeout=60).stdout == "1\n"
            for served in (one, two):
                served.kill()
                served.wait()
            lost = client.submit("1").result(timeout=60)
            assert lost.kind == "lost" and first in (lost.detail or "") and second in (lost.detail or "")
            assert client.run_cell(session, "x", sequence=1).result(timeout=60).kind == "lost"
            with pytest.raises(SandboxRefused):
                client.open_session().result(timeout=60)
        finally:
            client.close()
    with pytest.raises(EnvironmentMissing, match="no sandbox answers"):
        HttpSandbox([first, second])


def test_a_full_service_is_asked_again() -> None:
    with process("--port", "0", "--set", "queue=1") as (address, _):
        client = HttpSandbox([address])
        try:
            calls = [client.submit("import time\ntime.sleep(0.2)\nprint(1)") for _ in range(4)]
            assert [call.result(timeout=60).kind for call in calls] == ["ok"] * 4
        finally:
            client.close()


@pytest.mark.skipif(shutil.which("haproxy") is None, reason="HAProxy is not installed")
def test_the_shipped_haproxy_configuration(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with ExitStack() as stack:
        services = [stack.enter_context(process("--port", "0")) for _ in range(3)]
        servers = [address.removeprefix("http://") for address, _ in services]
        file = tmp_path / "haproxy.cfg"
        file.write_text(configuration(servers, f"127.0.0.1:{port}"))
        checked = subprocess.run(["haproxy", "-c", "-f", str(file)], capture_output=True, text=True)
        assert checked.returncode == 0, checked.stderr
        proxy = stack.enter_context(subprocess.Popen(["haproxy", "-db", "-f", str(file)], stderr=subprocess.DEVNULL))
        stack.callback(proxy.kill)
        address = f"http://127.0.0.1:{port}"
        _wait_for(address)
        client = HttpSandbox([address])
        stack.callback(client.close)

        sessions = [client.open_session().result(timeout=60) for _ in range(6)]
        for at in range(3):
            cells = [client.run_cell(session, f"x = {at}\nx", sequence=at) for session in sessions]
            assert [cell.result(timeout=60).stdout for cell in cells] == [f"{at}\n"] * 6

        calls = [client.submit(f"import time\ntime.sleep(0.02)\nprint({n})") for n in range(120)]
        calls[10].result(timeout=60)
        services[0][1].send_signal(signal.SIGKILL)
        outcomes = [call.result(timeout=60) for call in calls]
        printed = {n: outcome.stdout for n, outcome in enumerate(outcomes) if outcome.kind == "ok"}
        assert printed == {n: f"{n}\n" for n in range(120)}
        ends = [client.run_cell(session, "x + 1", sequence=3).result(timeout=60) for session in sessions]
        assert {end.kind for end in ends} == {"ok", "lost"}  # those of the dead one are gone, none began anew
        assert all(end.stdout == "3\n" for end in ends if end.kind == "ok")


def _wait_for(address: str) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            if httpx.get(f"{address}/health").status_code == 200:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.1)
    raise AssertionError("HAProxy did not come up")
