"""Seeds are exact, stable and depend on names alone."""

from __future__ import annotations

import hashlib
import json

from hypothesis import given
from hypothesis import strategies as st

from rstar2cli.core.seeds import derive_seed, generator


def test_first_53_bits_of_blake2b():
    digest = hashlib.blake2b(b"7\x00run:0:3\x002", digest_size=8).digest()
    expected = int("".join(f"{byte:08b}" for byte in digest)[:53], 2)
    assert derive_seed(7, "run:0:3", 2) == expected


@given(st.lists(st.one_of(st.integers(), st.text()), min_size=1, max_size=4))
def test_exact_as_a_json_number(parts):
    seed = derive_seed(*parts)
    assert 0 <= seed < 2**53
    assert int(float(json.dumps(seed))) == seed


def test_generators_of_different_purposes_differ_and_repeat():
    assert generator(1, "roc", "g").random() == generator(1, "roc", "g").random()
    assert generator(1, "roc", "g").random() != generator(1, "order", "g").random()
