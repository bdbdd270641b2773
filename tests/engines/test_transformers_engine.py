"""The embedded engine against plain transformers, and what its interface promises."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from engine_models import VOCAB, make_model, reference_logprobs, requests

from rstar2cli.core.errors import DataError, UsageError
from rstar2cli.engines.base import Request, Sampling
from rstar2cli.engines.config import EngineConfig
from rstar2cli.engines.running import Row
from rstar2cli.engines.transformers_engine import TransformersEngine

KINDS = ["qwen3-tied", "llama", "qwen2", "gpt-neox"]


@contextmanager
def running(model: Any, **config: Any) -> Iterator[TransformersEngine]:
    engine = TransformersEngine(model, EngineConfig(**{"max_running": 6, **config}), "v0")
    try:
        yield engine
    finally:
        engine.close()


@pytest.mark.parametrize("kind", KINDS)
def test_logprobs_are_those_of_the_processed_distribution(kind: str) -> None:
    model = make_model(kind)
    with running(model) as engine:
        assert engine.lean == (kind != "gpt-neox")
        asked = requests(14)
        answers = [future.result(60) for future in [engine.submit(request) for request in asked]]
    for request, answer in zip(asked, answers, strict=True):
        assert len(answer.ids) == len(answer.logprobs) == request.max_tokens
        assert answer.policy == "v0"
        expected = reference_logprobs(model, request, answer)
        torch.testing.assert_close(torch.tensor(answer.logprobs), expected, atol=2e-5, rtol=0)


@pytest.mark.parametrize("kind", ["qwen3-tied", "llama"])
def test_bfloat16_stays_close(kind: str) -> None:
    model = make_model(kind, torch.bfloat16)
    with running(model) as engine:
        asked = requests(8)
        answers = [future.result(60) for future in [engine.submit(request) for request in asked]]
    for request, answer in zip(asked, answers, strict=True):
        difference = torch.tensor(answer.logprobs) - reference_logprobs(model, request, answer)
        assert difference.abs().mean() < 0.02


def test_tokens_do_not_depend_on_the_company() -> None:
    asked = requests(12)
    with running(make_model("qwen3-tied")) as engine:
        together = [future.result(60).ids for future in [engine.submit(request) for request in asked]]
    with running(make_model("qwen3-tied"), max_running=1) as engine:
        alone = [engine.submit(request).result(60).ids for request in reversed(asked)][::-1]
    assert together == alone


def test_a_stop_token_ends_and_is_included() -> None:
    with running(make_model("llama")) as engine:
        free = engine.submit(requests(1)[0]).result(60)
        stop = free.ids[4]
        stopped = engine.submit(requests(1, stop_ids=(stop,))[0]).result(60)
    assert stopped.finish == "stop"
    assert stopped.ids == free.ids[: free.ids.index(stop) + 1]
    assert free.finish == "length"


def test_a_later_turn_continues_what_is_cached() -> None:
    model = make_model("llama")
    with running(model) as engine:
        first = requests(1)[0]
        answer = engine.submit(first).result(60)
        longer = Request(
            prompt_ids=[*first.prompt_ids, *answer.ids, 11, 12, 13],
            max_tokens=10,
            stop_ids=(),
            seed=99,
            sampling=Sampling(temperature=0.7),
        )
        second = engine.submit(longer).result(60)
    torch.testing.assert_close(
        torch.tensor(second.logprobs), reference_logprobs(model, longer, second), atol=2e-5, rtol=0
    )


@pytest.mark.parametrize("kind", KINDS)
def test_an_idle_engine_gives_its_cache_back_and_goes_on_the_same(kind: str) -> None:
    asked = requests(3)
    with running(make_model(kind)) as engine:
        before = [engine.submit(request).result(60) for request in asked]
        engine.idle()
        assert sum(layer.nbytes for layer in engine._cache.data) == 0
        after = [engine.submit(request).result(60) for request in asked]
    assert [one.ids for one in after] == [one.ids for one in before]


def test_capacity_holds_requests_back_until_there_is_room() -> None:
    asked = requests(6, max_tokens=30)
    with running(make_model("llama"), capacity_tokens=75) as engine:
        seen: list[int] = []
        original = engine._admit

        def watched() -> list[Row]:
            fresh = original()
            seen.append(sum(len(row.request.prompt_ids) + row.request.max_tokens for row in engine._rows))
            return fresh

        engine._admit = watched  # type: ignore[method-assign]
        for future in [engine.submit(request) for request in asked]:
            future.result(60)
    assert max(seen) <= 75
    assert max(seen) > 40  # more than one at once where two fit


def test_a_request_that_can_never_fit_is_refused() -> None:
    with running(make_model("llama"), capacity_tokens=20) as engine:
        error = engine.submit(requests(1, max_tokens=30)[0]).exception(10)
    assert isinstance(error, UsageError)
    assert "20" in error.message


def test_an_error_in_the_thread_reaches_every_caller() -> None:
    with running(make_model("llama")) as engine:
        bad = Request(prompt_ids=[VOCAB + 5], max_tokens=3, stop_ids=(), seed=0, sampling=Sampling())
        futures = [engine.submit(request) for request in [*requests(2), bad]]
        assert any(isinstance(future.exception(60), IndexError) for future in futures)
        assert isinstance(engine.submit(requests(1)[0]).exception(10), IndexError)


def test_closing_cancels_what_is_outstanding() -> None:
    with running(make_model("llama")) as engine:
        futures = [engine.submit(request) for request in requests(40, max_tokens=200)]
    assert all(future.done() for future in futures)
    assert engine.submit(requests(1)[0]).exception(1) is not None


@pytest.mark.parametrize("kind", ["qwen3-tied", "llama", "gpt-neox"])
def test_new_weights_change_what_it_says_and_its_version(kind: str) -> None:
    old, new = make_model(kind), make_model(kind, seed=5)
    with running(old) as engine:
        request = requests(1)[0]
        before = engine.submit(request).result(60)
        engine.load_weights([(name, parameter.detach()) for name, parameter in new.named_parameters()], "v1")
        assert engine.version == "v1"
        after = engine.submit(request).result(60)
    assert after.policy == "v1"
    assert before.ids != after.ids
    torch.testing.assert_close(torch.tensor(after.logprobs), reference_logprobs(new, request, after), atol=2e-5, rtol=0)


def test_a_tied_head_follows_the_embedding_even_if_it_is_named() -> None:
    new = make_model("qwen3-tied", seed=5)
    stale = torch.zeros_like(new.model.embed_tokens.weight)
    with running(make_model("qwen3-tied")) as engine:
        weights = [(name, parameter.detach()) for name, parameter in new.named_parameters()]
        engine.load_weights([*weights, ("lm_head.weight", stale)], "v1")
        request = requests(1)[0]
        after = engine.submit(request).result(60)
    torch.testing.assert_close(torch.tensor(after.logprobs), reference_logprobs(new, request, after), atol=2e-5, rtol=0)


def test_weights_that_do_not_fit_are_refused_and_change_nothing() -> None:
    model = make_model("llama")
    with running(model) as engine:
        request = requests(1)[0]
        before = engine.submit(request).result(60)
        weights = {name: parameter.detach() * 2 for name, parameter in model.named_parameters()}
        for wrong, word in (
            ({**weights, "nonsense.weight": torch.zeros(1)}, "unknown weight nonsense.weight"),
            ({name: w for name, w in weights.items() if name != "lm_head.weight"}, "missing weight lm_head.weight"),
            ({**weights, "model.norm.weight": torch.zeros(3)}, "model.norm.weight: shape"),
        ):
            with pytest.raises(DataError, match=word):
                engine.load_weights(wrong.items(), "v1")
        assert engine.version == "v0"
        assert engine.submit(request).result(60).ids == before.ids


def test_a_too_long_limit_names_what_works() -> None:
    with pytest.raises(UsageError, match="512"):
        TransformersEngine(make_model("llama"), EngineConfig(max_length=1000), "v0")
