"""Problems and settings of the small trainings here."""

from __future__ import annotations

from rstar2cli.dialogue.config import DialogueConfig
from rstar2cli.engines.config import EngineConfig
from rstar2cli.records import Problem
from rstar2cli.rl.config import TrainRlConfig
from rstar2cli.rollout.config import RolloutConfig
from rstar2cli.sandbox.config import SandboxConfig
from rstar2cli.training.config import OptimConfig

DIALOGUE = DialogueConfig(system="short")


def make_problems(count: int = 6) -> list[Problem]:
    """Problems whose answer is always 1 or 2."""
    return [Problem(id=f"p{n}", source="test", prompt=f"Digit {n}?", answer=str(1 + n % 2)) for n in range(count)]


def make_config(**changes: object) -> TrainRlConfig:
    """Two small steps in float32."""
    rollout = RolloutConfig(
        max_turns=2,
        max_response=60,
        deterministic=True,
        wave=8,
        engine=EngineConfig(device="cpu", dtype="float32", max_running=8),
        sandbox=SandboxConfig(workers=1),
        dialogue=DIALOGUE,
    )
    values: dict[str, object] = {
        "steps": 2,
        "prompts_per_step": 2,
        "samples": 8,
        "optim": OptimConfig(lr=1e-3, device="cpu", dtype="float32"),
        "rollout": rollout,
    }
    return TrainRlConfig(**{**values, **changes})  # type: ignore[arg-type]
