"""``rstar2 sft``: supervised fine-tuning on conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rstar2cli.cli.options import Model
from rstar2cli.cli.stage import Stage, stage
from rstar2cli.core.errors import DataError
from rstar2cli.sft.config import SftConfig

if TYPE_CHECKING:
    from rstar2cli.sft.masking import Example


@stage(
    config=SftConfig,
    examples=[
        "rstar2 sft data/conversations -m models/base -o runs/sft",
        "rstar2 sft data/conversations -m models/base -o runs/sft --set optim.lr=1e-4 --set epochs=1 --set batch=16",
        "rstar2 sft data/conversations -m models/base -o runs/sft --resume",
    ],
    run_directory=True,
)
def main(run: Stage[SftConfig], model: Model) -> None:
    """Fine-tune a model on conversations: the loss counts what the assistant wrote, its stop tokens included.

    IN is conversation records. OUT is a run directory with model/, metrics.jsonl, checkpoints/ and rejects.jsonl;
    it can be given as -m to the other stages. Too long conversations are rejected, never cut.
    """
    from rstar2cli.sft.trainer import run_sft
    from rstar2cli.training.rundir import check_out

    check_out(run.out, stage="sft", resume=run.resume, overwrite=run.overwrite)
    examples = _examples(run, model)
    if run.dry_run:
        _plan(run, model, examples)
        return
    result = run_sft(
        examples,
        model,
        run.out,
        run.config,
        seed=run.seed,
        resume=run.resume,
        overwrite=run.overwrite,
        resolved=run.resolved(),
        rejects=() if run.rejects else run.rejected,  # those of --rejects are kept already
        progress=run.progress,
    )
    run.finish(
        digest=result.digest,
        base=result.base,
        conversations=result.conversations,
        steps=result.steps,
        loss=result.loss,
        seconds=round(result.seconds, 1),
    )


def _examples(run: Stage[SftConfig], model: str) -> list[Example]:
    """The conversations as tokens; stops here, before any training, if too many were rejected."""
    from rstar2cli.records import Conversation
    from rstar2cli.sft.trainer import prepare

    def leave_out(conversation: Conversation, reason: str) -> None:
        run.reject(run.refusal(conversation.id, f"conversation {conversation.id}: {reason}"), counted=True)

    try:
        examples = prepare(run.read(Conversation, keep_places=True), model, run.config, leave_out)
    except DataError:
        run.keep_rejects()
        run.judge_rejects()  # if rows were refused, these are the reason that nothing is left
        raise
    run.keep_rejects()
    run.judge_rejects()
    return examples


def _plan(run: Stage[SftConfig], model: str, examples: list[Example]) -> None:
    from rstar2cli.policy.describe import describe_model
    from rstar2cli.sft.trainer import total_steps

    found: dict[str, Any] = describe_model(model)
    lengths = [len(example.sequence.ids) for example in examples]
    run.plan(
        model=f"{found['path']} ({found['parameters'] / 1e6:.1f} M parameters, digest {found['digest']})",
        conversations=len(examples),
        tokens=sum(lengths),
        learned=sum(example.sequence.n_masked for example in examples),
        longest=max(lengths),
        rejected=len(run.rejected),
        steps=total_steps(len(examples), run.config),
        memory=f"{found['parameters'] * 18 / 2**30:.1f} GiB for weights, gradients and AdamW, activations aside",
    )
