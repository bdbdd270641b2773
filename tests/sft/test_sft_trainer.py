"""SFT: what is learned, in which order, from which conversations; resume."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from rstar2cli.core import drain
from rstar2cli.core.errors import DataError, InputMissing, OutputConflict, Stopped, UsageError
from rstar2cli.core.progress import Progress
from rstar2cli.policy.load import load_policy
from rstar2cli.policy.tiny import init_tiny
from rstar2cli.records import Conversation, Message
from rstar2cli.sft.config import SftConfig, SftOptimConfig
from rstar2cli.sft.trainer import batch_of, prepare, run_sft, total_steps

OPTIM = SftOptimConfig(lr=2e-2, dtype="float32", device="cpu", micro_tokens=600)
CONFIG = SftConfig(epochs=2, batch=4, optim=OPTIM)


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("base") / "tiny"
    init_tiny(path, seed=5, dtype=torch.float32)
    return str(path)


def conversation(number: int, answer: str = "it is {}</reason>", **more: object) -> Conversation:
    messages = [
        Message(role="system", content="s"),
        Message(role="user", content=f"q{number}"),
        Message(role="assistant", content=answer.format(number), **more),
    ]
    return Conversation(id=f"c{number}", source="test", messages=messages)


def no_rejects(conversation: Conversation, reason: str) -> None:
    raise AssertionError(f"{conversation.id}: {reason}")


def examples(base: str, count: int = 10, config: SftConfig = CONFIG):
    return prepare([conversation(n) for n in range(count)], base, config, no_rejects)


def test_only_what_the_assistant_wrote_is_learned(base):
    tokenizer = load_policy(base, device="cpu").tokenizer
    sequence = examples(base, 1)[0].sequence
    learned = [token for token, counts in zip(sequence.ids, sequence.mask, strict=True) if counts]
    assert tokenizer.decode(learned) == "it is 0</reason><|im_end|>"


def test_loss_falls_and_the_run_directory_is_whole(base, tmp_path):
    reports: list[Progress] = []
    result = run_sft(examples(base), base, str(tmp_path / "run"), CONFIG, progress=reports.append)
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    losses = [row["value"] for row in rows if row["name"] == "loss"]
    assert result.steps == 5 == len(losses)
    assert losses[-1] < losses[0] - 0.5
    assert result.loss == losses[-1]
    assert [report.done for report in reports] == [1, 2, 3, 4, 5]
    assert {"loss", "tokens_per_s", "lr", "grad_norm", "epoch"} <= {row["name"] for row in rows}
    assert all(row["kind"] == "metric/1" for row in rows)
    assert load_policy(tmp_path / "run").digest == result.digest != result.base
    mark = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (mark["kind"], mark["stage"], mark["default"], mark["model"]) == ("run/1", "sft", "metrics.jsonl", "model")


def test_the_first_loss_is_the_mean_over_all_learned_tokens(base, tmp_path):
    config = SftConfig(epochs=1, batch=10, optim=OPTIM)
    given = prepare([conversation(n, "x" * (1 + 9 * n)) for n in range(10)], base, config, no_rejects)
    run_sft(given, base, str(tmp_path / "run"), config)
    model = load_policy(base, device="cpu", dtype="float32").model
    total, count = 0.0, 0
    for example in given:
        ids = torch.tensor([example.sequence.ids])
        with torch.no_grad():
            logp = model(input_ids=ids).logits[0, :-1].log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
        mask = torch.tensor(example.sequence.mask[1:])
        total, count = total - float(logp[mask].sum()), count + int(mask.sum())
    first = json.loads(next(r for r in (tmp_path / "run" / "metrics.jsonl").open() if '"loss"' in r))
    assert first["value"] == pytest.approx(total / count, rel=1e-4)


@pytest.mark.parametrize(("count", "batch", "epochs"), [(10, 4, 3), (3, 8, 2), (8, 4, 2), (1, 1, 3), (7, 7, 1)])
def test_every_epoch_sees_every_conversation_once(count, batch, epochs):
    config = SftConfig(epochs=epochs, batch=batch)
    steps = [batch_of(step, count, config, seed=1) for step in range(1, total_steps(count, config) + 1)]
    stream = [place for step in steps for place in step]
    assert all(len(step) == batch for step in steps[:-1])
    for epoch in range(epochs):
        assert sorted(stream[epoch * count : (epoch + 1) * count]) == list(range(count))
    assert len(stream) == count * epochs


def test_order_depends_on_seed_and_epoch():
    config = SftConfig(epochs=2, batch=30)
    first, second = batch_of(1, 30, config, seed=1), batch_of(2, 30, config, seed=1)
    assert first != second != batch_of(2, 30, config, seed=2)
    assert first == batch_of(1, 30, config, seed=1)


def test_too_long_and_empty_conversations_are_rejected_with_their_reason(base):
    rejected: dict[str, str] = {}
    given = [conversation(0), conversation(1, "y" * 3000), conversation(2, train=False)]
    config = SftConfig(max_length=1000, optim=OPTIM)
    kept = prepare(given, base, config, lambda c, why: rejected.update({c.id: why}))
    assert [example.id for example in kept] == ["c0"]
    assert "more than max_length 1000" in rejected["c1"]
    assert "nothing to learn" in rejected["c2"]


def test_nothing_to_learn_from_is_an_error(base):
    with pytest.raises(DataError, match=r"no conversation to learn from \(1 rejected\)"):
        prepare([conversation(2, train=False)], base, CONFIG, lambda c, why: None)
    with pytest.raises(DataError, match=r"\(0 rejected\)"):
        prepare([], base, CONFIG, no_rejects)


def test_max_length_beyond_the_model_is_refused(base):
    with pytest.raises(UsageError, match="can take 4096"):
        prepare([conversation(0)], base, SftConfig(max_length=5000), no_rejects)


def test_stopped_and_resumed_ends_the_same(base, tmp_path):
    given = examples(base)
    straight = run_sft(given, base, str(tmp_path / "a"), CONFIG, seed=3)

    def stop_at_two(report: Progress) -> None:
        if report.done == 2:
            drain.request("SIGTERM")

    out = str(tmp_path / "b")
    try:
        with pytest.raises(Stopped, match="step 2 of 5"):
            run_sft(given, base, out, CONFIG, seed=3, progress=stop_at_two)
    finally:
        drain.reset()
    with pytest.raises(InputMissing, match="no model yet"):
        load_policy(out)
    resumed = run_sft(given, base, out, CONFIG, seed=3, resume=True)
    assert resumed.digest == straight.digest
    again = run_sft(given, base, out, CONFIG, seed=3, resume=True)  # nothing left to do
    assert (again.digest, again.loss) == (straight.digest, None)


def test_seed_decides_the_result(base, tmp_path):
    given = examples(base)
    one, same, other = (
        run_sft(given, base, str(tmp_path / name), CONFIG, seed=seed).digest
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert one == same != other


def test_an_existing_out_is_refused_and_overwritten_when_asked(base, tmp_path):
    given, out = examples(base, 4), str(tmp_path / "run")
    run_sft(given, base, out, CONFIG)
    with pytest.raises(OutputConflict, match="exists") as caught:
        run_sft(given, base, out, CONFIG)
    assert "--resume" in str(caught.value.hint) and "--overwrite" in str(caught.value.hint)
    (Path(out) / "model" / "leftover").write_text("old")
    (Path(out) / "notes.txt").write_text("mine")
    run_sft(given, base, out, CONFIG, overwrite=True)
    assert not (Path(out) / "model" / "leftover").exists() and (Path(out) / "notes.txt").exists()


def test_overwrite_never_removes_what_is_not_a_run(base, tmp_path):
    (tmp_path / "precious").write_text("data")
    with pytest.raises(OutputConflict, match="not a run"):
        run_sft(examples(base, 4), base, str(tmp_path), CONFIG, overwrite=True)
    assert (tmp_path / "precious").read_text() == "data"


def test_resume_with_other_data_or_settings_is_refused(base, tmp_path):
    out = str(tmp_path / "run")
    run_sft(examples(base, 4), base, out, CONFIG)
    with pytest.raises(OutputConflict, match="another input: data: "):
        run_sft(examples(base, 5), base, out, CONFIG, resume=True)
    with pytest.raises(OutputConflict, match=r"config\.batch: 4 → 2"):
        run_sft(examples(base, 4), base, out, SftConfig(epochs=2, batch=2, optim=OPTIM), resume=True)


def test_nothing_to_resume_is_said(base, tmp_path):
    with pytest.raises(InputMissing, match="no run to resume"):
        run_sft(examples(base, 4), base, str(tmp_path / "run"), CONFIG, resume=True)
