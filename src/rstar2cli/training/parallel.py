"""Several processes: gradients are summed over ranks, and set-ups that would train wrongly are refused.

Every rank holds the whole list of a step's sequences and works on its own share of the
micro-batches, so a global denominator needs no exchange, and one rank gives the same sum.
Known traps of ``accelerate launch`` on CPUs: ``--cpu --num_processes 2`` runs one process,
and an FSDP configuration runs processes that never exchange gradients.
"""

from __future__ import annotations

import atexit
import datetime
from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
from accelerate import Accelerator, DistributedType
from accelerate.utils import InitProcessGroupKwargs, parse_flag_from_env
from torch import Tensor

from rstar2cli.core.errors import EnvironmentMissing, UsageError
from rstar2cli.core.process import ranks

_SUPPORTED = (DistributedType.NO, DistributedType.MULTI_CPU, DistributedType.MULTI_GPU)

_PATIENCE = datetime.timedelta(days=1)
"""How long ranks wait for each other: in train-rl the first one generates while the others wait."""


class Parallel:
    """This process among the ranks of a training."""

    def __init__(self, *, expected: int = 0, device: torch.device) -> None:
        """Raises ``UsageError`` if ``expected`` processes were promised or another kind of sharding was configured,
        ``EnvironmentMissing`` if the processes do not reach each other."""
        patience = InitProcessGroupKwargs(timeout=_PATIENCE)
        self._accelerator: Any = Accelerator(cpu=device.type == "cpu", kwargs_handlers=[patience])
        self.rank: int = self._accelerator.process_index
        self.world: int = self._accelerator.num_processes
        kind = self._accelerator.distributed_type
        sharded = parse_flag_from_env("ACCELERATE_USE_FSDP") or parse_flag_from_env("ACCELERATE_USE_DEEPSPEED")
        if kind not in _SUPPORTED or sharded:
            raise UsageError(
                "accelerate was configured to shard the model (FSDP, DeepSpeed); training here replicates it",
                hint="launch with torchrun, or accelerate launch without FSDP, DeepSpeed and Megatron",
            )
        if self.world != ranks().world_size or (expected and self.world != expected):
            wanted = expected or ranks().world_size
            raise UsageError(
                f"{wanted} processes expected, {self.world} running",
                hint="on CPUs start them with: ACCELERATE_USE_CPU=true torchrun --nproc-per-node N -m rstar2cli …",
            )
        self._probe(device)
        if self.world > 1:
            # gloo's threads abort a process that ends with its group still there, now and then
            atexit.register(_leave_group)

    @property
    def main(self) -> bool:
        """Whether this rank writes."""
        return self.rank == 0

    def share(self, items: list[Any]) -> list[Any]:
        """This rank's part: every ``world``-th, so that lengths are spread evenly."""
        return items[self.rank :: self.world]

    def sum_gradients(self, tensors: Iterable[Tensor]) -> None:
        """Add up tensors over all ranks, in place."""
        if self.world > 1:
            for tensor in tensors:
                dist.all_reduce(tensor)

    def sum_numbers(self, values: dict[str, float], device: torch.device) -> dict[str, float]:
        """Add up figures by name over all ranks; every rank must give the same names."""
        if self.world == 1:
            return values
        kind = torch.float32 if device.type == "mps" else torch.float64
        packed = torch.tensor([values[name] for name in sorted(values)], dtype=kind, device=device)
        dist.all_reduce(packed)
        return dict(zip(sorted(values), packed.tolist(), strict=True))

    def broadcast(self, value: Any) -> Any:
        """Rank 0's picklable value on every rank."""
        if self.world == 1:
            return value
        holder = [value]
        dist.broadcast_object_list(holder, src=0)
        return holder[0]

    def same_everywhere(self, text: str, what: str) -> None:
        """Raise ``EnvironmentMissing`` unless every rank gives the same text."""
        if self.world == 1:
            return
        every: list[Any] = [None] * self.world
        dist.all_gather_object(every, text)
        if len(set(every)) > 1:
            raise EnvironmentMissing(f"{what} differs between processes: {', '.join(map(str, every))}")

    def wait(self) -> None:
        """Until all ranks are here."""
        self._accelerator.wait_for_everyone()

    def _probe(self, device: torch.device) -> None:
        """A gradient that each rank computes alone must come back as the sum of all."""
        if self.world == 1:
            return
        weight = torch.ones(2, device=device, requires_grad=True)
        (weight.sum() * (self.rank + 1)).backward()  # type: ignore[no-untyped-call]
        assert weight.grad is not None
        if dist.is_initialized():
            dist.all_reduce(weight.grad)
        expected = self.world * (self.world + 1) / 2
        if not torch.equal(weight.grad, torch.full_like(weight.grad, expected)):
            raise EnvironmentMissing(
                f"{self.world} processes started, but gradients are not summed between them",
                hint="on CPUs start them with: ACCELERATE_USE_CPU=true torchrun --nproc-per-node N -m rstar2cli …",
            )


def _leave_group() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()
