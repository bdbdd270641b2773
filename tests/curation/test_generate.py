"""The generator: seeded, balanced, prefix-stable, and nothing on both sides of the split."""

import collections
import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rstar2cli.curation.synth.generate import canonical, generate, make_problem, split_of
from rstar2cli.curation.synth.registry import FAMILIES


def take(count, **options):
    return list(itertools.islice(generate(**options), count))


@pytest.mark.parametrize("split", ["train", "heldout", "all"])
def test_a_shorter_output_is_a_prefix(split):
    assert take(16, seed=3, split=split)[:8] == take(8, seed=3, split=split)


def test_seeds_differ():
    first = {problem.id for problem in take(66, seed=1, split="train")}
    assert len(first & {problem.id for problem in take(66, seed=2, split="train")}) < 10


def test_rounds_hold_every_family_once():
    problems = take(3 * len(FAMILIES), seed=0, split="all")
    for start in range(0, len(problems), len(FAMILIES)):
        families = [problem.extra["family"] for problem in problems[start : start + len(FAMILIES)]]
        assert sorted(families) == sorted(FAMILIES)


def test_the_order_of_families_changes_from_round_to_round():
    names = [problem.extra["family"] for problem in take(2 * len(FAMILIES), seed=0, split="all")]
    assert names[: len(FAMILIES)] != names[len(FAMILIES) :]


def test_no_parameters_twice_and_ids_are_unique():
    problems = take(600, seed=5, split="all")
    assert len({(p.extra["family"], canonical(p.extra["params"])) for p in problems}) == 600
    assert len({p.id for p in problems}) == 600


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**40), st.integers(0, 2**40))
def test_train_and_heldout_never_share_parameters_whatever_the_seeds(seed, other):
    train = {(p.extra["family"], canonical(p.extra["params"])) for p in take(110, seed=seed, split="train")}
    heldout = {(p.extra["family"], canonical(p.extra["params"])) for p in take(110, seed=other, split="heldout")}
    assert not train & heldout


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(sorted(FAMILIES)), st.integers(0, 2**40), st.randoms(use_true_random=False))
def test_the_side_depends_on_neither_phrasing_nor_order_of_names(name, seed, shuffler):
    family = FAMILIES[name]
    params = family.draw(random.Random(seed))
    names = list(params)
    shuffler.shuffle(names)
    assert split_of(name, {key: params[key] for key in names}) == split_of(name, params)
    sides = {make_problem(family, params, phrasing).extra["split"] for phrasing in range(len(family.phrasings))}
    assert len(sides) == 1


def test_a_fifth_is_held_out():
    sides = collections.Counter(problem.extra["split"] for problem in take(2200, seed=0, split="all"))
    assert 0.17 < sides["heldout"] / 2200 < 0.23


def test_all_phrasings_of_a_family_come_up():
    problems = take(40, seed=0, split="all", families=["multiples_sum"])
    assert {problem.extra["phrasing"] for problem in problems} == set(range(5))


def test_a_family_whose_parameters_are_used_up_drops_out():
    problems = list(generate(seed=0, split="heldout", families=["lattice_circle"]))
    sides = [split_of("lattice_circle", {"n": n}) for n in range(30, 1201)]
    assert 0.98 * sides.count("heldout") < len(problems) <= sides.count("heldout")


def test_the_id_names_family_values_and_phrasing():
    problem = make_problem(FAMILIES["gcd_lcm"], {"a": 12, "b": 30}, 1)
    assert problem.id == "synth:gcd_lcm/12-30.1"
    assert problem.source == "synth:gcd_lcm"
    assert problem.prompt == "What is gcd(12, 30) + lcm(12, 30)?"
    assert problem.answer == "66"
