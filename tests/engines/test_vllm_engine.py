"""The vllm engine, where vLLM is installed. One start serves all checks: it takes up to minutes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("vllm")

from engine_models import reference_logprobs

from rstar2cli.core.errors import DataError, EnvironmentMissing, UsageError
from rstar2cli.engines.base import Request, Sampling
from rstar2cli.engines.config import EngineConfig
from rstar2cli.engines.vllm_engine import VllmEngine
from rstar2cli.policy.load import load_policy
from rstar2cli.policy.tiny import init_tiny


@pytest.fixture(scope="module")
def model_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("vllm") / "model"
    init_tiny(path, seed=1, hidden=64, head_dim=64, dtype=torch.float32)
    return path


@pytest.fixture(scope="module")
def model(model_path: Path) -> Any:
    return load_policy(model_path, device="cpu", dtype="float32").model


@pytest.fixture(scope="module")
def engine(model_path: Path) -> Iterator[VllmEngine]:
    made = VllmEngine(
        str(model_path),
        EngineConfig(name="vllm", dtype="float32", max_running=8, max_length=256, memory_share=0.1),
        "v0",
    )
    yield made
    made.close()


def _requests() -> list[Request]:
    sampling = Sampling(temperature=0.7)
    return [
        Request(prompt_ids=[3, 4, 5 + n % 3], max_tokens=12, stop_ids=[7], seed=2**53 - 1 - n, sampling=sampling)
        for n in range(6)
    ]


def _check(engine: VllmEngine, model: Any) -> list[list[int]]:
    asked = _requests()
    answers = [future.result(300) for future in [engine.submit(request) for request in asked]]
    for request, answer in zip(asked, answers, strict=True):
        expected = reference_logprobs(model, request, answer)
        torch.testing.assert_close(torch.tensor(answer.logprobs), expected, atol=1e-3, rtol=0)
        assert answer.finish == ("stop" if answer.ids[-1] == 7 else "length")
    return [answer.ids for answer in answers]


def test_vllm_keeps_the_protocol(engine: VllmEngine, model: Any) -> None:
    first = _check(engine, model)
    assert _check(engine, model) == first, "seeds decide the tokens"

    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * parameter.std() * torch.randn_like(parameter) if parameter.dim() > 1 else 0.0)
    engine.load_weights([(name, parameter.detach()) for name, parameter in model.named_parameters()], "v1")
    assert engine.version == "v1"
    assert _check(engine, model) != first, "a tied head must follow its embedding"

    with pytest.raises(DataError, match="unknown weight nope"):
        engine.load_weights([("nope", torch.zeros(2))], "v2")
    _check(engine, model)

    with pytest.raises(EnvironmentMissing, match="deterministic"):
        engine.generate_wave(_requests())
    too_long = Request(prompt_ids=[1], max_tokens=5000, stop_ids=[], seed=0, sampling=Sampling())
    assert isinstance(engine.submit(too_long).exception(10), UsageError)
