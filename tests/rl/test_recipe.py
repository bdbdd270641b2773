"""The paper's recipe as files: every TOML is a configuration, and says what the paper says."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from rstar2cli.core.config import resolve, toml_layer
from rstar2cli.evals.config import EvalConfig
from rstar2cli.rl.config import TrainRlConfig
from rstar2cli.rollout.config import RolloutConfig
from rstar2cli.sft.config import SftConfig

COMMANDS = Path(__file__).parents[2] / "commands"
PAPER = COMMANDS / "rstar2-14b"
CLASSES: dict[str, type[Any]] = {
    "sft": SftConfig,
    "rl-stage1": TrainRlConfig,
    "rl-stage2": TrainRlConfig,
    "rl-stage3": TrainRlConfig,
    "rollout": RolloutConfig,
    "eval": EvalConfig,
}


def load(name: str) -> Any:
    return resolve(CLASSES[name], [toml_layer(str(PAPER / f"{name}.toml"))])


def test_every_file_has_its_class() -> None:
    assert {path.stem for path in PAPER.glob("*.toml")} == set(CLASSES)


@pytest.mark.parametrize(
    ("stage", "steps", "turns", "response"), [(1, 300, 10, 8192), (2, 85, 10, 12288), (3, 125, 15, 12288)]
)
def test_rl_stages_are_those_of_the_paper(stage: int, steps: int, turns: int, response: int) -> None:
    config: TrainRlConfig = load(f"rl-stage{stage}")
    assert (config.steps, config.rollout.max_turns, config.rollout.max_response) == (steps, turns, response)
    assert (config.prompts_per_step, config.samples, config.mini_batches) == (512, 32, 1)
    assert (config.optim.lr, config.optim.warmup, config.optim.schedule) == (1e-6, 20, "constant")
    assert (config.loss.clip_low, config.loss.clip_high, config.loss.aggregation) == (0.2, 0.28, "group-token-mean")
    assert (config.roc.mode, config.rollout.sampling.temperature) == ("paper", 1.0)


def test_sft_and_evaluation_are_those_of_the_paper() -> None:
    sft: SftConfig = load("sft")
    assert (sft.epochs, sft.batch, sft.optim.lr, sft.optim.warmup, sft.optim.schedule) == (3, 128, 5e-6, 0.04, "cosine")
    measure: EvalConfig = load("eval")
    rollout = measure.rollout
    assert (rollout.samples, rollout.sampling.temperature, rollout.max_turns, rollout.max_response) == (
        16, 0.6, 30, 30000,
    )  # fmt: skip


def test_all_stages_share_one_dialogue() -> None:
    """A model must be trained and run with the same prompts."""
    dialogues = [load("sft").dialogue, load("rollout").dialogue, load("eval").rollout.dialogue]
    dialogues += [load(f"rl-stage{stage}").rollout.dialogue for stage in (1, 2, 3)]
    assert len(set(dialogues)) == 1


def test_script_and_launch_configuration_are_well_formed() -> None:
    subprocess.run(["bash", "-n", str(COMMANDS / "rstar2-14b.sh")], check=True)
    launch = yaml.safe_load((PAPER / "mi300x-fsdp2.yaml").read_text())
    assert (launch["num_processes"], launch["fsdp_config"]["fsdp_version"]) == (64, 2)
