"""Deterministic mode: to the bit, a row depends on its request and the number of rows alone."""

from collections.abc import Iterator

import pytest
import torch
from engine_models import make_model, reference_logprobs, requests

from rstar2cli.core.errors import UsageError
from rstar2cli.engines.config import EngineConfig
from rstar2cli.engines.transformers_engine import TransformersEngine


@pytest.fixture(scope="module", params=[("qwen3-tied", torch.bfloat16), ("llama", torch.float32)])
def engine(request: pytest.FixtureRequest) -> Iterator[TransformersEngine]:
    kind, dtype = request.param
    made = TransformersEngine(make_model(kind, dtype), EngineConfig(max_running=3), "v0")
    yield made
    made.close()


def test_neighbours_change_no_bit_of_a_row(engine: TransformersEngine) -> None:
    asked = requests(9, stop_ids=(5, 17, 60))
    whole = engine.generate_wave(asked[:5])
    assert engine.generate_wave([asked[0], None, None, None, None])[0] == whole[0]
    other = engine.generate_wave([asked[8], asked[1], asked[7], asked[3], asked[6]])
    assert other[1] == whole[1]
    assert other[3] == whole[3]


def test_what_ran_before_changes_nothing(engine: TransformersEngine) -> None:
    asked = requests(4)
    whole = engine.generate_wave(asked)
    for future in [engine.submit(request) for request in requests(7)]:
        future.result(60)
    assert engine.generate_wave(asked) == whole


def test_rows_are_in_order_and_empty_rows_stay_empty(engine: TransformersEngine) -> None:
    asked = requests(2)
    answers = engine.generate_wave([None, asked[1], None, asked[0]])
    assert [answer is None for answer in answers] == [True, False, True, False]
    assert [len(answer.ids) for answer in answers if answer is not None] == [asked[1].max_tokens, asked[0].max_tokens]


def test_a_wave_says_what_the_model_says() -> None:
    model = make_model("llama")
    engine = TransformersEngine(model, EngineConfig(max_running=2), "v0")
    asked = requests(5)
    for request, answer in zip(asked, engine.generate_wave(asked), strict=True):
        assert answer is not None
        expected = reference_logprobs(model, request, answer)
        torch.testing.assert_close(torch.tensor(answer.logprobs), expected, atol=2e-5, rtol=0)
    engine.close()


def test_a_wave_that_can_not_fit_names_one_that_can() -> None:
    engine = TransformersEngine(make_model("llama"), EngineConfig(capacity_tokens=100), "v0")
    with pytest.raises(UsageError, match="cache tokens") as caught:
        engine.generate_wave(requests(8))
    assert caught.value.hint is not None
    assert "waves of at most" in caught.value.hint
    engine.close()
