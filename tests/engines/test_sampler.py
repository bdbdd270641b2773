"""What is drawn, and the log-probs of what it was drawn from."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rstar2cli.engines.base import Sampling
from rstar2cli.engines.sampler import draw, uniforms


def _grid(points: int) -> torch.Tensor:
    return (torch.arange(points, dtype=torch.float64) + 0.5) / points


def test_an_even_grid_of_numbers_gives_the_distribution() -> None:
    logits = torch.randn(1, 1000, generator=torch.Generator().manual_seed(1)) * 2
    tokens, logprobs = draw(logits.expand(20000, -1), _grid(20000), [Sampling(temperature=0.7)] * 20000)
    expected = (logits[0] / 0.7).softmax(-1)
    counts = torch.bincount(tokens, minlength=1000) / 20000
    assert (counts - expected).abs().max() < 1.1 / 20000 + 1e-6
    torch.testing.assert_close(logprobs, expected.log()[tokens], atol=1e-5, rtol=0)


def test_greedy_takes_the_likeliest_with_its_plain_logprob() -> None:
    logits = torch.tensor([[0.0, 2.0, 1.0]])
    tokens, logprobs = draw(logits, torch.tensor([0.99], dtype=torch.float64), [Sampling(temperature=0)])
    assert tokens.tolist() == [1]
    torch.testing.assert_close(logprobs, logits.log_softmax(-1)[:, 1])


def test_top_k_then_top_p_renormalise() -> None:
    logits = torch.tensor([0.4, 0.3, 0.2, 0.1]).log()[None].expand(100, -1)
    tokens, logprobs = draw(logits, _grid(100), [Sampling(top_k=3, top_p=0.7)] * 100)
    # Of 0.4/0.3/0.2 renormalised (0.444, 0.333, 0.222) the nucleus of 0.7 is the first two.
    assert set(tokens.tolist()) == {0, 1}
    torch.testing.assert_close(logprobs.exp(), torch.tensor([4 / 7, 3 / 7])[tokens], atol=1e-6, rtol=0)


def test_rows_with_limits_do_not_change_the_others() -> None:
    logits = torch.randn(3, 777, generator=torch.Generator().manual_seed(2)).bfloat16()
    numbers = torch.tensor([0.3, 0.6, 0.9], dtype=torch.float64)
    plain = draw(logits, numbers, [Sampling()] * 3)
    mixed = draw(logits, numbers, [Sampling(), Sampling(top_k=5), Sampling()])
    for before, after in zip(plain, mixed, strict=True):
        assert before[[0, 2]].tolist() == after[[0, 2]].tolist()


def test_logits_are_left_as_they_were() -> None:
    logits = torch.randn(2, 50)
    kept = logits.clone()
    draw(logits, torch.tensor([0.1, 0.2], dtype=torch.float64), [Sampling(), Sampling()])
    assert torch.equal(logits, kept)


@settings(max_examples=60, deadline=None)
@given(
    number=st.floats(0, 1, exclude_max=True),
    possible=st.lists(st.integers(0, 599), min_size=1, max_size=5, unique=True),
)
def test_impossible_tokens_are_never_drawn(number: float, possible: list[int]) -> None:
    logits = torch.full((1, 600), -torch.inf)
    logits[0, possible] = torch.linspace(0, -30, len(possible))
    tokens, logprobs = draw(logits, torch.tensor([number], dtype=torch.float64), [Sampling()])
    assert tokens.item() in possible
    assert torch.isfinite(logprobs).all()


def test_streams_depend_on_the_seed_alone() -> None:
    first = uniforms(2**53 - 1)
    assert [first.random() for _ in range(3)] == list(uniforms(2**53 - 1).random(3))
    assert uniforms(1).random() != uniforms(2).random()
