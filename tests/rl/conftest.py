"""A tiny model that knows the dialogue and answers with a random digit: rewards differ within a group."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from rl_digits import DIALOGUE, make_problems  # type: ignore[import-not-found]

from rstar2cli.dialogue.dialogue import conversation_of
from rstar2cli.policy.tiny import init_tiny
from rstar2cli.records import Conversation, Message, Problem
from rstar2cli.sft.config import SftConfig, SftOptimConfig
from rstar2cli.sft.trainer import prepare, run_sft


def _conversation(problem: Problem, digit: int) -> Conversation:
    text = f"x</reason>\n<answer>\\boxed{{{digit}}}</answer>"
    return conversation_of(problem, [Message(role="assistant", content=text)])


@pytest.fixture(scope="session")
def digit_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Checkpoint of a model that was taught to answer with 1, 2 or 3, whatever is asked."""
    place = tmp_path_factory.mktemp("digit")
    init_tiny(place / "random", seed=3, hidden=32, heads=2, kv_heads=1, head_dim=16, max_length=1024)
    rng = random.Random(1)
    talks = [_conversation(problem, rng.randint(1, 3)) for problem in make_problems(6) for _ in range(8)]
    config = SftConfig(
        epochs=16,
        batch=6,
        dialogue=DIALOGUE,
        optim=SftOptimConfig(lr=1e-2, dtype="float32", device="cpu", micro_tokens=16384),
    )
    examples = prepare(talks, str(place / "random"), config, lambda one, why: pytest.fail(f"{one.id}: {why}"))
    run_sft(examples, str(place / "random"), str(place / "sft"), config)
    return str(Path(place / "sft" / "model"))
