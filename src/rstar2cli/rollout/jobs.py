"""Which trajectories a rollout consists of: problems to slots, samples, ids and seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rstar2cli.core.seeds import derive_seed, generator
from rstar2cli.records import Problem
from rstar2cli.rollout.config import RolloutConfig


@dataclass(frozen=True, kw_only=True)
class Job:
    """One trajectory to be made."""

    problem: Problem
    """What is to be solved."""
    run: str
    """Name of the run."""
    step: int
    """Training step."""
    slot: int
    """Place of the prompt within the step."""
    sample: int
    """Number within the group."""
    seed: int
    """53-bit seed of the trajectory."""

    @property
    def group(self) -> str:
        """`run:step:slot`."""
        return f"{self.run}:{self.step}:{self.slot}"

    @property
    def id(self) -> str:
        """`run:step:slot/sample`."""
        return f"{self.group}/{self.sample}"


def group_jobs(problem: Problem, slot: int, config: RolloutConfig, seed: int) -> list[Job]:
    """The samples of one problem. Seeds come from (run seed, group, sample) alone."""
    group = f"{config.run}:{config.step}:{slot}"
    return [
        Job(
            problem=problem,
            run=config.run,
            step=config.step,
            slot=slot,
            sample=sample,
            seed=derive_seed(seed, group, sample),
        )
        for sample in range(config.samples)
    ]


def make_jobs(problems: Sequence[Problem], config: RolloutConfig, seed: int) -> list[Job]:
    """All jobs of ``config.step``, group by group: slot i is the i-th problem of the step."""
    if config.step:
        count = config.problems_per_step or len(problems)
        problems = [problems[place] for place in step_places(len(problems), config.step, count, seed)]
    elif config.problems_per_step:
        problems = problems[: config.problems_per_step]
    return [job for slot, problem in enumerate(problems) for job in group_jobs(problem, slot, config, seed)]


def step_places(n_problems: int, step: int, count: int, seed: int) -> list[int]:
    """Places in the problem list of the ``count`` slots of ``step`` (from 1).

    The problems are permuted anew for each pass over them, by (seed, "problems", pass); steps
    take consecutive stretches of these permutations.
    """
    if not n_problems:
        return []
    orders: dict[int, list[int]] = {}
    places = []
    for index in range((step - 1) * count, step * count):
        epoch, place = divmod(index, n_problems)
        if epoch not in orders:
            order = list(range(n_problems))
            generator(seed, "problems", epoch).shuffle(order)
            orders[epoch] = order
        places.append(orders[epoch][place])
    return places
