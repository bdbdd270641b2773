"""AdamW on float32 master weights of a model that may compute in bfloat16.

Gradients of every micro-batch are added up in float32; the model's own weights are the
rounded masters after each step. A model in float32 is its own master.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rstar2cli.training.config import OptimConfig


class MasterOptimizer:
    """Owns masters, float32 gradients and the moments of all trainable weights of a model."""

    def __init__(self, model: Any, config: OptimConfig) -> None:
        self._config = config
        self._weights: dict[str, Tensor] = {n: p for n, p in model.named_parameters() if p.requires_grad}
        self.masters: dict[str, Tensor] = {}
        """Float32 weights by checkpoint name; a tied head is not named again."""
        for name, weight in self._weights.items():
            master = weight.detach() if weight.dtype == torch.float32 else weight.detach().float()
            master.grad = torch.zeros_like(master)
            self.masters[name] = master
            weight.register_post_accumulate_grad_hook(_adder(master.grad))  # type: ignore[no-untyped-call]
        decayed = [m for m in self.masters.values() if m.ndim >= 2]
        plain = [m for m in self.masters.values() if m.ndim < 2]
        self._adamw = torch.optim.AdamW(
            [{"params": decayed, "weight_decay": config.weight_decay}, {"params": plain, "weight_decay": 0.0}],
            lr=config.lr,
            betas=(config.beta1, config.beta2),
            eps=config.epsilon,
            fused=True,
        )

    @property
    def gradients(self) -> dict[str, Tensor]:
        """Float32 gradients added up since the last step."""
        return {name: master.grad for name, master in self.masters.items() if master.grad is not None}

    def clip(self) -> float:
        """Scale the whole gradient down to the configured norm; its norm before."""
        grads = list(self.gradients.values())
        norm = torch.nn.utils.get_total_norm(grads)
        if self._config.max_grad_norm and torch.isfinite(norm):
            factor = (self._config.max_grad_norm / (norm + 1e-6)).clamp(max=1.0)
            torch._foreach_mul_(grads, factor)
        return float(norm)

    def step(self, lr: float) -> None:
        """One AdamW step; the model takes the rounded masters and the gradients are zero again."""
        for group in self._adamw.param_groups:
            group["lr"] = lr
        self._adamw.step()
        self.write_back()
        self.zero()

    def zero(self) -> None:
        """Forget the gradients."""
        torch._foreach_zero_(list(self.gradients.values()))

    def write_back(self) -> None:
        """Round the masters into the model."""
        with torch.no_grad():
            for name, weight in self._weights.items():
                if weight.dtype != torch.float32:
                    weight.copy_(self.masters[name])

    def state(self) -> dict[str, Tensor]:
        """Masters and moments as ``master.NAME``, ``exp_avg.NAME``, ``exp_avg_sq.NAME`` and ``step.NAME``."""
        tensors: dict[str, Tensor] = {}
        for name, master in self.masters.items():
            tensors[f"master.{name}"] = master
            for key, value in self._adamw.state[master].items():
                tensors[f"{key}.{name}"] = value
        return tensors

    def load_state(self, tensors: dict[str, Tensor]) -> None:
        """Take what :meth:`state` gave. Raises ``KeyError`` for a missing name, ``RuntimeError`` for a wrong shape."""
        with torch.no_grad():
            for name, master in self.masters.items():
                master.copy_(tensors[f"master.{name}"])
                moments = {key: tensors.get(f"{key}.{name}") for key in ("step", "exp_avg", "exp_avg_sq")}
                if moments["step"] is not None:
                    self._adamw.state[master] = {
                        key: value.to(master.device).clone() for key, value in moments.items() if value is not None
                    }
        self.write_back()
        self.zero()


def _adder(total: Tensor) -> Any:
    def add(weight: Tensor) -> None:
        assert weight.grad is not None
        total.add_(weight.grad)
        weight.grad = None

    return add
