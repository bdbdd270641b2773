"""Supervised fine-tuning: mean negative log-likelihood of the learned tokens over each whole batch."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import AutoConfig

from rstar2cli.core.config import to_dict
from rstar2cli.core.errors import DataError, UsageError
from rstar2cli.core.progress import Progress, ProgressFn, silent
from rstar2cli.core.seeds import generator
from rstar2cli.dialogue.dialogue import Dialogue
from rstar2cli.policy.describe import check_model
from rstar2cli.policy.digest import checkpoint_digest
from rstar2cli.policy.load import load_tokenizer, resolve_model
from rstar2cli.policy.packing import TrainSequence, count_masked
from rstar2cli.records import Conversation
from rstar2cli.sft.config import SftConfig
from rstar2cli.sft.masking import Example, OnReject, make_examples
from rstar2cli.shards.rejects import Reject
from rstar2cli.training.loop import LossFn, Trainer
from rstar2cli.training.rundir import MODEL, is_done, open_run, write_rejects


@dataclass(frozen=True, kw_only=True)
class SftResult:
    """What a run of SFT gave."""

    out: str
    """The run directory."""
    digest: str
    """Digest of the trained model."""
    base: str
    """Digest of the model it started from."""
    conversations: int
    """Conversations learned from."""
    steps: int
    """Optimizer steps in all."""
    loss: float | None
    """Loss of the last step; null if the run was complete already."""
    seconds: float
    """Wall time of this process's steps."""


def prepare(conversations: Iterable[Conversation], model: str, config: SftConfig, on_reject: OnReject) -> list[Example]:
    """Render conversations for a model; reads its tokenizer and configuration, not its weights.

    Raises ``DataError`` if no conversation is left, ``UsageError`` if ``max_length`` is beyond the model's limit.
    """
    directory = resolve_model(model)
    limit = _model_limit(directory)
    if config.max_length > limit:
        raise UsageError(f"max_length {config.max_length}: {directory} can take {limit} tokens")
    dialogue = Dialogue(load_tokenizer(directory), config.dialogue)
    rejected, reason = 0, ""

    def reject(conversation: Conversation, why: str) -> None:
        nonlocal rejected, reason
        rejected, reason = rejected + 1, f"{conversation.id}: {why}"
        on_reject(conversation, why)

    examples = make_examples(conversations, dialogue, config.max_length or limit, reject)
    if not examples:
        hint = f"the last one: {reason}" if reason else "the input is empty"
        raise DataError(f"no conversation to learn from ({rejected} rejected)", hint=hint)
    return examples


def run_sft(
    examples: list[Example],
    model: str,
    out: str,
    config: SftConfig,
    *,
    seed: int = 0,
    resume: bool = False,
    overwrite: bool = False,
    resolved: Mapping[str, Any] | None = None,
    rejects: Sequence[Reject] = (),
    progress: ProgressFn = silent,
) -> SftResult:
    """Train ``model`` on the examples into the run directory ``out``.

    ``resolved`` is the configuration to note there (default: ``config``), ``rejects`` the rows left out.
    Raises ``Stopped`` after a stop that was asked for (resumable), and what ``open_run`` and ``Trainer`` raise.
    """
    noted = {**(resolved or {"config": to_dict(config), "seed": seed}), "model": model, "data": data_digest(examples)}
    steps = total_steps(len(examples), config)
    check_model(model)  # a model that can't be read is told before --overwrite clears anything
    with open_run(out, stage="sft", config=noted, resume=resume, overwrite=overwrite) as path:
        write_rejects(path, rejects)
        started, loss = time.monotonic(), None
        if resume and is_done(path):
            base, digest = checkpoint_digest(resolve_model(model)), checkpoint_digest(path / MODEL)
        else:
            trainer = Trainer(model, path, config.optim, total_steps=steps)
            trainer.resume()
            loss = _train(trainer, examples, config, seed, progress)
            base, digest = trainer.policy.digest, trainer.finish()
    return SftResult(
        out=out,
        digest=digest,
        base=base,
        conversations=len(examples),
        steps=steps,
        loss=loss,
        seconds=time.monotonic() - started,
    )


def total_steps(examples: int, config: SftConfig) -> int:
    """Optimizer steps: all epochs in one stream, cut into batches; the last may be short."""
    return math.ceil(examples * config.epochs / config.batch)


def batch_of(step: int, count: int, config: SftConfig, seed: int) -> list[int]:
    """Places of the examples of a step (from 1). Each epoch is a permutation of its own, keyed by its number,
    so the step alone says where the data stands: nothing is skipped or repeated at a boundary or a resume."""
    first, last = (step - 1) * config.batch, min(step * config.batch, count * config.epochs)
    places = []
    for epoch in range(first // count, (last - 1) // count + 1):
        order = list(range(count))
        generator(seed, "sft-order", epoch).shuffle(order)
        places += order[max(0, first - epoch * count) : last - epoch * count]
    return places


def data_digest(examples: list[Example]) -> str:
    """First 16 hex digits of the blake2b over the tokens and masks in order: a resume must see the same data."""
    hasher = hashlib.blake2b(digest_size=8)
    for example in examples:
        hasher.update(repr((example.id, example.sequence.ids, example.sequence.mask)).encode())
    return hasher.hexdigest()


def _train(trainer: Trainer, examples: list[Example], config: SftConfig, seed: int, progress: ProgressFn) -> float:
    loss = float("nan")
    while trainer.step_done < trainer.total_steps:
        places = batch_of(trainer.step_done + 1, len(examples), config, seed)
        sequences = [examples[place].sequence for place in places]
        result = trainer.step(sequences, mean_nll(sequences))
        loss = result.loss
        epoch = result.step * config.batch / len(examples)
        trainer.record({**result.metrics(), "epoch": min(epoch, float(config.epochs))})
        speed = round(result.tokens / max(result.seconds, 1e-9))
        info: dict[str, float | int | str] = {"loss": round(loss, 4), "tokens/s": speed}
        progress(Progress(task="sft", done=result.step, total=trainer.total_steps, unit="steps", info=info))
        trainer.safe_point({})
    return loss


def mean_nll(sequences: list[TrainSequence]) -> LossFn:
    """−Σ log p / (learned tokens of the whole batch)."""
    denominator = count_masked(sequences)
    return lambda logp, _: -logp.sum() / denominator


def _model_limit(directory: Path) -> int:
    config = AutoConfig.from_pretrained(directory, trust_remote_code=False, local_files_only=True)
    return int(config.max_position_embeddings)
