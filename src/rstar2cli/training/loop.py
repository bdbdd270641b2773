"""The trainer that sft and train-rl share: micro-batches, global denominators, clipping, AdamW, metrics, resume."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rstar2cli.core import drain
from rstar2cli.core.errors import DataError, Stopped
from rstar2cli.policy.checkpoint import save_model
from rstar2cli.policy.devices import prepare_for_training
from rstar2cli.policy.digest import model_digest
from rstar2cli.policy.load import load_policy
from rstar2cli.policy.logprobs import check_head, masked_logprobs
from rstar2cli.policy.packing import MicroBatch, TrainSequence, count_masked, pack
from rstar2cli.policy.sharing import share_up_to
from rstar2cli.training.config import OptimConfig
from rstar2cli.training.metrics import MetricsLog
from rstar2cli.training.optimizer import MasterOptimizer
from rstar2cli.training.parallel import Parallel
from rstar2cli.training.rundir import CHECKPOINTS, MODEL, mark_done, run_name
from rstar2cli.training.schedule import learning_rate
from rstar2cli.training.state import TrainState, newest_state, save_state

LossFn = Callable[[Tensor, MicroBatch], Tensor]
"""(T,) log-probs of a micro-batch's counted tokens → scalar share of the step's loss.

The shares of all micro-batches add up to the loss, so every denominator in it must be of the
whole step, fixed before any division. ``MicroBatch.flat`` and ``MicroBatch.sequence`` say which
of the step's tokens and sequences these are.
"""

_RNG = "rng"


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """What one optimizer step was."""

    step: int
    """Its number, from 1."""
    loss: float
    """The loss before the step."""
    grad_norm: float
    """Norm of the whole gradient before clipping."""
    lr: float
    """Learning rate used."""
    tokens: int
    """Tokens that went through the model, padding aside."""
    counted: int
    """Tokens that the loss counts."""
    seconds: float
    """Wall time."""

    def metrics(self) -> dict[str, float]:
        """As figures of a run's history."""
        return {
            "loss": self.loss,
            "grad_norm": self.grad_norm,
            "lr": self.lr,
            "tokens": self.tokens,
            "counted_tokens": self.counted,
            "step_seconds": self.seconds,
            "tokens_per_s": self.tokens / max(self.seconds, 1e-9),
        }


class Trainer:
    """A model under optimization, writing into a run directory opened with ``open_run``."""

    def __init__(self, model: str, out: Path, config: OptimConfig, *, total_steps: int) -> None:
        """Load the model. Raises what ``load_policy``, ``Parallel`` and ``check_head`` raise."""
        self.config = config
        self.out = out
        self.total_steps = total_steps
        self.step_done = 0
        """Optimizer steps so far."""
        self.policy = load_policy(model, device=config.device, dtype=config.dtype)
        """The model in training; its weights change in place."""
        self.device: torch.device = next(self.policy.model.parameters()).device
        self.parallel = Parallel(expected=config.processes, device=self.device)
        check_head(self.policy.model)
        self.parallel.same_everywhere(self.policy.digest, f"{model}: the digest")
        prepare_for_training(self.policy.model)
        self._share_up_to = share_up_to(self.policy.model)
        if config.recompute:
            self.policy.model.train()
            self.policy.model.activation_checkpointing_enable()
        self.optimizer = MasterOptimizer(self.policy.model, config)
        self._metrics = MetricsLog(out, run_name(out))

    def logprobs(self, sequences: list[TrainSequence], *, temperature: float = 1.0) -> Tensor:
        """Log-probs of all counted tokens of the sequences in order, on the CPU, without gradient; on every rank."""
        result = torch.zeros(count_masked(sequences), device=self.device)
        with torch.no_grad():
            for batch in self._micro_batches(sequences):
                result[batch.flat] = self._forward(batch, temperature)
        self.parallel.sum_gradients([result])
        return result.cpu()

    def step(self, sequences: list[TrainSequence], loss_fn: LossFn, *, temperature: float = 1.0) -> StepResult:
        """One optimizer step on all sequences.

        Raises ``DataError`` if nothing counts, ``Stopped`` if loss or gradient is not finite (weights unchanged).
        """
        started = time.monotonic()
        counted = count_masked(sequences)
        if not counted:
            raise DataError(f"step {self.step_done + 1}: no token of its {len(sequences)} sequences counts")
        total = torch.zeros((), dtype=torch.float64 if self.device.type != "mps" else torch.float32)
        for batch in self._micro_batches(sequences):
            loss = loss_fn(self._forward(batch, temperature), batch)
            if loss.requires_grad:
                loss.backward()  # type: ignore[no-untyped-call]
            total += loss.detach().cpu()
        loss_sum = self.parallel.sum_numbers({"loss": float(total)}, self.device)["loss"]
        self.parallel.sum_gradients(self.optimizer.gradients.values())
        norm = self.optimizer.clip()
        self._require_finite(loss_sum, norm)
        lr = learning_rate(self.config, self.step_done + 1, self.total_steps)
        self.optimizer.step(lr)
        self.step_done += 1
        return StepResult(
            step=self.step_done,
            loss=loss_sum,
            grad_norm=norm,
            lr=lr,
            tokens=sum(len(sequence.ids) for sequence in sequences if any(sequence.mask)),
            counted=counted,
            seconds=time.monotonic() - started,
        )

    def record(self, values: Mapping[str, float]) -> None:
        """Write figures of the step just done to the run's history."""
        if self.parallel.main:
            self._metrics.append(self.step_done, values)

    def safe_point(self, caller: Mapping[str, Any]) -> None:
        """After a step that is done and recorded: save if it is time, and stop (saved) if a stop was asked for.

        ``caller`` is what the stage wants back from :meth:`resume`. Raises ``Stopped``.
        """
        asked = self.parallel.sum_numbers({"asked": float(drain.requested())}, self.device)["asked"] > 0
        every = self.config.save_every
        if self.step_done < self.total_steps and (asked or (every and self.step_done % every == 0)):
            self.save(caller)
        if asked and self.step_done < self.total_steps:
            drain.check(f"step {self.step_done} of {self.total_steps} is saved in {self.out}")
            raise Stopped(f"stopped by another process: step {self.step_done} of {self.total_steps} is saved")

    def save(self, caller: Mapping[str, Any]) -> None:
        """Write a checkpoint to resume from."""
        if self.parallel.main:
            tensors = {**self.optimizer.state(), _RNG: torch.get_rng_state()}
            state = TrainState(step=self.step_done, tensors=tensors, caller=dict(caller), base=self.policy.digest)
            save_state(self.out / CHECKPOINTS, state, keep=self.config.keep)
        self.parallel.wait()

    def resume(self) -> dict[str, Any] | None:
        """Go back to the newest checkpoint of the run; what ``caller`` was, or None if there is none.

        The history is cut back to that step. Raises ``DataError`` if the checkpoint is not of this model.
        """
        state = newest_state(self.out / CHECKPOINTS)
        self.parallel.wait()
        if self.parallel.main:
            self._metrics.truncate(state.step if state else 0)
        if state is None:
            return None
        if state.base != self.policy.digest:
            raise DataError(
                f"{self.out}: its checkpoint started from model {state.base}, not {self.policy.digest}",
                hint="give the model that the run was started with",
            )
        try:
            torch.set_rng_state(state.tensors.pop(_RNG))
            self.optimizer.load_state(state.tensors)
        except (KeyError, RuntimeError) as error:
            raise DataError(f"{self.out}: the checkpoint does not fit the model: {error}") from error
        self.step_done = state.step
        return state.caller

    def digest(self) -> str:
        """Digest of the weights as they are now."""
        return model_digest(self.policy.model)

    def finish(self) -> str:
        """Write the model, in the type it computes in, and mark the run as done; the model's digest."""
        if self.parallel.main:
            dtype = next(self.policy.model.parameters()).dtype
            save_model(self.policy.model, self.policy.tokenizer, self.out / MODEL, dtype=dtype)
            mark_done(self.out)
        self.parallel.wait()
        return self.digest()

    def _micro_batches(self, sequences: list[TrainSequence]) -> list[MicroBatch]:
        mine = self.parallel.share(pack(sequences, self.config.micro_tokens, share_up_to=self._share_up_to))
        return [batch.to(self.device) for batch in mine]

    def _forward(self, batch: MicroBatch, temperature: float) -> Tensor:
        return masked_logprobs(self.policy.model, batch, temperature=temperature, chunk=self.config.head_chunk)

    def _require_finite(self, loss: float, norm: float) -> None:
        if torch.isfinite(torch.tensor([loss, norm])).all():
            return
        self.optimizer.zero()
        raise Stopped(
            f"step {self.step_done + 1}: loss {loss}, gradient norm {norm}; weights stay at step {self.step_done}",
            hint="lower lr, or resume from the last checkpoint with another setting",
        )
