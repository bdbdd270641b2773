"""Each family: two methods agree, answers vary, texts are complete, programs print the answer."""

import collections
import random
import subprocess
import sys

import pytest

from rstar2cli.curation.synth.family import CrossCheckError, Family
from rstar2cli.curation.synth.registry import FAMILIES

EACH = pytest.mark.parametrize("family", FAMILIES.values(), ids=list(FAMILIES))


def test_there_are_at_least_sixteen_families_of_all_topics():
    assert len(FAMILIES) >= 16
    topics = {family.topic for family in FAMILIES.values()}
    assert topics == {"number theory", "counting", "algebra", "sums", "dates", "sequences", "geometry"}


@EACH
def test_two_methods_agree_and_no_answer_dominates(family: Family):
    answers = []
    for seed in range(200):
        answers.append(family.solve(family.draw(random.Random(seed))))
    assert all(0 <= answer < 10**7 for answer in answers)
    assert collections.Counter(answers).most_common(1)[0][1] < 0.15 * len(answers)


@EACH
def test_phrasings_differ_and_name_the_same_parameters(family: Family):
    assert len(family.phrasings) >= 4
    assert len(family.reasons) >= 3
    rng = random.Random(0)
    for _ in range(20):
        params = family.draw(rng)
        texts = [family.fill(phrasing, params) for phrasing in family.phrasings]
        assert len(set(texts)) == len(texts)
        for text in texts:
            assert "$" not in text


@EACH
def test_every_phrasing_tells_every_parameter(family: Family):
    """Two different parameter sets never read the same."""
    rng = random.Random(0)
    sets = [family.draw(rng) for _ in range(100)]
    for phrasing in family.phrasings:
        read: dict[str, dict[str, int]] = {}
        for params in sets:
            assert read.setdefault(family.fill(phrasing, params), params) == params


@EACH
def test_programs_print_the_answer_in_a_plain_process(family: Family):
    rng = random.Random(7)
    for program in family.programs:
        params = family.draw(rng)
        code = family.fill(program, params)
        assert len(code.split("\n")) <= 8
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout.strip() == str(family.solve(params)), code


@EACH
def test_all_texts_fill(family: Family):
    params = family.draw(random.Random(3))
    for template in (*family.phrasings, *family.programs, *family.reasons):
        assert family.fill(template, params)


def test_a_disagreement_of_the_methods_raises():
    wrong = Family(
        name="wrong",
        topic="sums",
        draw=lambda rng: {"n": 1},
        answer=lambda p: 1,
        check=lambda p: 2,
        phrasings=("",),
        programs=("",),
        reasons=("",),
    )
    with pytest.raises(CrossCheckError, match="1 by the first method, 2 by the second"):
        wrong.solve({"n": 1})
