"""Log-probs and their gradients against full logits, whatever the packing, order, chunk, attention or temperature."""

from __future__ import annotations

import copy
import random

import pytest
import torch

from rstar2cli.core.errors import EnvironmentMissing
from rstar2cli.policy.attention import NAME as BMM
from rstar2cli.policy.lean import make_lean
from rstar2cli.policy.load import load_policy
from rstar2cli.policy.logprobs import check_head, masked_logprobs
from rstar2cli.policy.packing import TrainSequence, count_masked, pack
from rstar2cli.policy.sharing import share_up_to
from rstar2cli.policy.tiny import init_tiny


@pytest.fixture(scope="module", params=[True, False], ids=["tied", "untied"])
def model(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "tiny"
    init_tiny(path, seed=3, tied=request.param, dtype=torch.float32)
    return load_policy(path, device="cpu", dtype="float32").model


def make_sequences(count: int = 9, seed: int = 0) -> list[TrainSequence]:
    rng = random.Random(seed)
    result = []
    for _ in range(count):
        length = rng.randint(2, 60)
        mask = [False] + [rng.random() < 0.6 for _ in range(length - 1)]
        result.append(TrainSequence(ids=[rng.randrange(250) for _ in range(length)], mask=mask))
    return result


def reference(model, sequences: list[TrainSequence], weights: torch.Tensor, temperature: float):
    """Log-probs of the counted tokens in order, and gradients: full logits of single rows, eager attention."""
    model.set_attn_implementation("eager")
    model.zero_grad()
    parts = []
    for sequence in sequences:
        ids = torch.tensor([sequence.ids])
        logp = (model(input_ids=ids, use_cache=False).logits[0, :-1] / temperature).log_softmax(-1)
        parts.append(logp.gather(1, ids[0, 1:, None])[:, 0][torch.tensor(sequence.mask[1:])])
    logp = torch.cat(parts)
    (logp * weights).sum().backward()
    return logp.detach(), {name: p.grad.clone() for name, p in model.named_parameters()}


def ours(model, sequences, weights, temperature, *, budget=128, chunk=7, attention=BMM, lean=False, share_up_to=0):
    if lean:
        model = copy.deepcopy(model)
        assert make_lean(model) == 2 * 5 + 1  # each layer's two norms, norms of queries and keys, MLP; the last norm
    model.set_attn_implementation(attention)
    model.zero_grad()
    result = torch.full((count_masked(sequences),), float("nan"))
    for batch in pack(sequences, budget, share_up_to=share_up_to):
        logp = masked_logprobs(model, batch, temperature=temperature, chunk=chunk)
        (logp * weights[batch.flat]).sum().backward()
        result[batch.flat] = logp.detach()
    return result, {name: p.grad.clone() for name, p in model.named_parameters()}


def relative(a: dict, b: dict) -> float:
    """Largest error of a gradient relative to the size of the whole gradient of its tensor."""
    return max(float((a[n] - b[n]).norm() / b[n].norm()) for n in b)


@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize(
    "options", [{}, {"budget": 1}, {"budget": 4096}, {"chunk": 512}, {"attention": "sdpa"}, {"lean": True}], ids=str
)
def test_values_and_gradients_equal_full_logits(model, options, temperature):
    sequences = make_sequences()
    weights = torch.linspace(-1, 2, count_masked(sequences))
    expected, expected_grad = reference(model, sequences, weights, temperature)
    got, grad = ours(model, sequences, weights, temperature, **options)
    assert torch.allclose(got, expected, rtol=1e-4, atol=1e-5)
    assert relative(grad, expected_grad) < 1e-4
    assert (got <= 0).all()


def make_alike(shared: int) -> list[TrainSequence]:
    """Sequences of which most begin with the same tokens; some count from the first token behind them."""
    rng = random.Random(1)
    prefix = [rng.randrange(250) for _ in range(shared)]
    result = make_sequences(2, seed=5)
    for place in range(8):
        rest = [rng.randrange(250) for _ in range(rng.randint(1, 30))]
        mask = [place % 2 == 0] + [rng.random() < 0.6 for _ in rest[1:]]
        result.append(TrainSequence(ids=prefix + rest, mask=[False] * shared + mask))
    return result


@pytest.mark.parametrize("lean", [False, True], ids=["plain", "lean"])
@pytest.mark.parametrize("budget", [1, 60, 100, 4096])
def test_a_shared_prefix_changes_neither_values_nor_gradients(model, budget, lean):
    sequences = make_alike(20)
    weights = torch.linspace(-1, 2, count_masked(sequences))
    expected, expected_grad = reference(model, sequences, weights, 1.0)
    got, grad = ours(model, sequences, weights, 1.0, budget=budget, lean=lean, share_up_to=1024)
    assert torch.allclose(got, expected, rtol=1e-4, atol=1e-5)
    assert relative(grad, expected_grad) < 1e-4


def test_a_shared_prefix_is_computed_once():
    sequences = make_alike(40)[2:]
    (batch,) = pack(sequences, 10_000, share_up_to=1024)
    longest = max(len(sequence.ids) for sequence in sequences)
    rows = len(batch.rows)
    assert batch.prefix == 40
    assert batch.ids.shape == (1, 40 + rows * (longest - 40))
    assert batch.n_tokens == sum(len(sequences[row].ids) for row in batch.rows)
    for one in pack(sequences, 100, share_up_to=1024):
        assert one.ids.numel() <= 100 or len(one.rows) == 1


@pytest.mark.parametrize(("shared", "share_up_to"), [(15, 1024), (40, 0), (40, 39)], ids=["short", "off", "long rows"])
def test_rows_are_laid_out_one_by_one_where_sharing_does_not_pay(shared, share_up_to):
    (batch,) = pack(make_alike(shared)[2:], 10_000, share_up_to=share_up_to)
    assert batch.prefix == 0
    assert batch.positions is None
    assert batch.ids.shape[0] == len(batch.rows)


def test_counted_tokens_are_never_shared():
    """A prefix that counts in one row has a gradient of its own there."""
    ids = list(range(40))
    mask = [False] * 20 + [True] * 20
    (batch,) = pack([TrainSequence(ids=ids, mask=mask)] * 3, 10_000, share_up_to=1024)
    assert batch.prefix == 20
    assert batch.targets.tolist() == ids[20:] * 3


def test_sharing_is_off_for_models_that_do_not_hand_it_on(model):
    model.set_attn_implementation(BMM)
    assert share_up_to(model) == 1024
    model.set_attn_implementation("sdpa")
    assert share_up_to(model) == 0
    model.set_attn_implementation(BMM)
    whole = model.base_model.forward
    model.base_model.forward = lambda **given: whole(
        **{name: given[name] for name in given if name not in ("shared_prefix", "prefix_rows")}
    )
    try:
        assert share_up_to(model) == 0
    finally:
        del model.base_model.forward


def test_order_of_sequences_does_not_matter(model):
    sequences = make_sequences()
    weights = torch.ones(count_masked(sequences))
    plain, plain_grad = ours(model, sequences, weights, 1.0)
    turned, turned_grad = ours(model, sequences[::-1], weights, 1.0)
    assert torch.allclose(plain.sum(), turned.sum(), rtol=1e-5)
    assert relative(turned_grad, plain_grad) < 1e-4


def test_temperature_is_that_of_the_logits(model):
    sequences = make_sequences(3)
    weights = torch.ones(count_masked(sequences))
    assert not torch.allclose(
        ours(model, sequences, weights, 1.0)[0], ours(model, sequences, weights, 0.5)[0], atol=1e-3
    )


def test_bfloat16_gradient_keeps_confident_tokens(model):
    """1 − p of a token with p = 0.999 must not be lost to the rounding of p."""
    hidden = torch.zeros(1, 4, dtype=torch.bfloat16, requires_grad=True)
    from rstar2cli.policy.logprobs import _ChunkedHead

    head = torch.zeros(8, 4, dtype=torch.bfloat16)
    with torch.no_grad():
        hidden[0, 0] = 1.0
        head[0, 0] = 9.0
    _ChunkedHead.apply(hidden, head.requires_grad_(), torch.tensor([0]), 1.0, 512).sum().backward()
    p = torch.softmax(torch.tensor([9.0] + [0.0] * 7), 0)[0]
    assert float(head.grad[0, 0]) == pytest.approx(float(1 - p), rel=0.01)


def test_padding_past_the_budget_stays_small():
    sequences = make_sequences(40, seed=1)
    batches = pack(sequences, 256)
    assert sorted(row for batch in batches for row in batch.rows) == [i for i, s in enumerate(sequences) if any(s.mask)]
    assert all(batch.ids.numel() <= 256 for batch in batches)
    assert all(batch.ids.shape[1] == max(len(sequences[row].ids) for row in batch.rows) for batch in batches)


def test_sequences_without_a_counted_token_are_left_out():
    assert pack([TrainSequence(ids=[1, 2], mask=[False, False])], 100) == []


def test_sequence_refuses_what_can_not_be_trained():
    with pytest.raises(ValueError, match="first token"):
        TrainSequence(ids=[1], mask=[True])
    with pytest.raises(ValueError, match="2 tokens but 1"):
        TrainSequence(ids=[1, 2], mask=[False])


def test_heads_with_more_than_a_product_are_refused(model):
    check_head(model)
    model.config.final_logit_softcapping = 30.0
    try:
        with pytest.raises(EnvironmentMissing, match="softcapping"):
            check_head(model)
    finally:
        del model.config.final_logit_softcapping
