"""The http engine against real vLLM servers, where vLLM is installed. Starting them takes minutes."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import torch

pytest.importorskip("vllm")

from engine_models import reference_logprobs

from rstar2cli.core.errors import EnvironmentMissing, UsageError
from rstar2cli.engines.base import Request, Sampling
from rstar2cli.engines.config import EngineConfig
from rstar2cli.engines.http_engine import HttpEngine
from rstar2cli.policy.load import load_policy
from rstar2cli.policy.tiny import init_tiny


@contextmanager
def serving(model: Path, log: Path, *flags: str) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model), "--port", str(port)]
    command += ["--host", "127.0.0.1", "--dtype", "float32", "--max-model-len", "256", "--enforce-eager"]
    command += ["--gpu-memory-utilization", "0.1", *flags]
    environment = {**os.environ, "VLLM_CPU_KVCACHE_SPACE": "1"}
    with log.open("wb") as output:
        server = subprocess.Popen(command, stdout=output, stderr=output, env=environment, start_new_session=True)
    address = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 280
        while time.monotonic() < deadline:
            assert server.poll() is None, log.read_text()[-3000:]
            try:
                if httpx.get(f"{address}/health").status_code == 200:
                    break
            except httpx.TransportError:
                time.sleep(0.5)
        yield address
    finally:
        os.killpg(server.pid, 9)
        server.wait()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("http") / "model"
    init_tiny(path, seed=1, hidden=64, head_dim=64, dtype=torch.float32)
    return path


@pytest.mark.timeout(600)
def test_http_keeps_the_protocol(model: Path, tmp_path: Path) -> None:
    plain = load_policy(model, device="cpu", dtype="float32").model
    asked = [
        Request(
            prompt_ids=[3, 4, 5 + n % 3],
            max_tokens=12,
            stop_ids=[7],
            seed=2**53 - 1 - n,
            sampling=Sampling(temperature=0.7),
        )
        for n in range(6)
    ]
    with serving(model, tmp_path / "log", "--logprobs-mode", "processed_logprobs") as address:
        # The second address leads nowhere a while after the start: its requests go to the first.
        engine = HttpEngine(EngineConfig(name="http", endpoints=(address, address), max_running=4), "v0")
        engine._servers[1].address = "http://127.0.0.1:9"
        answers = [future.result(120) for future in [engine.submit(request) for request in asked]]
        again = [future.result(120) for future in [engine.submit(request) for request in asked]]
        assert [a.ids for a in answers] == [a.ids for a in again], "seeds decide the tokens"
        for request, answer in zip(asked, answers, strict=True):
            expected = reference_logprobs(plain, request, answer)
            torch.testing.assert_close(torch.tensor(answer.logprobs), expected, atol=1e-3, rtol=0)
            assert answer.finish == ("stop" if answer.ids[-1] == 7 else "length")
            assert answer.policy == "v0"
        assert engine.max_length == 256
        too_long = Request(prompt_ids=[1], max_tokens=5000, stop_ids=[], seed=0, sampling=Sampling())
        assert isinstance(engine.submit(too_long).exception(10), UsageError)
        with pytest.raises(EnvironmentMissing, match="weights"):
            engine.load_weights([], "v1")
        engine.close()


@pytest.mark.timeout(600)
def test_a_server_with_raw_logprobs_is_refused(model: Path, tmp_path: Path) -> None:
    with (
        serving(model, tmp_path / "log") as address,
        pytest.raises(EnvironmentMissing, match="raw log-probs"),
    ):
        HttpEngine(EngineConfig(name="http", endpoints=(address,)), "v0")
