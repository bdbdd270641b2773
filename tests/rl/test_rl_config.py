"""Settings that can't work are refused with the reason; nothing heavy is imported to read them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from rstar2cli.core.config import Layer, resolve
from rstar2cli.core.errors import UsageError
from rstar2cli.rl.config import TrainRlConfig


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"samples": 2}, "samples must be at least 4"),
        ({"steps": 0}, "steps must be at least 1"),
        ({"rollout.samples": 8}, "set samples instead of rollout.samples"),
        ({"rollout.problems_per_step": 8}, "set prompts_per_step instead"),
        ({"rollout.step": 3}, "set by the training"),
        ({"rollout.sampling.temperature": 0}, "greedy"),
        ({"rollout.sampling.top_p": 0.9}, "bias the gradient"),
        ({"rollout.sampling.top_k": 20}, "bias the gradient"),
        ({"roc.epsilon": 0}, "epsilon"),
        ({"loss.aggregation": "constant"}, "constant_length"),
        ({"roc.epsilonn": 0.1}, "did you mean 'roc.epsilon'"),
    ],
)
def test_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        resolve(TrainRlConfig, [Layer(origin="--set", values=values)])


def test_biased_sampling_can_be_forced() -> None:
    values = {"rollout.sampling.top_p": 0.9, "allow_biased_sampling": True}
    assert resolve(TrainRlConfig, [Layer(origin="--set", values=values)]).rollout.sampling.top_p == 0.9


def test_nothing_heavy_is_imported() -> None:
    code = "import sys, rstar2cli.rl.config, rstar2cli.cli.train_rl; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "transformers", "pyarrow", "duckdb", "sympy"} & set(loaded)
