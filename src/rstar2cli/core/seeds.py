"""Seeds that depend on names, never on the order of ranks, engines or arrival."""

from __future__ import annotations

import hashlib
import random

_SEED_BITS = 53  # exact as a JSON number (IEEE double)


def derive_seed(*parts: int | str) -> int:
    """First 53 bits of blake2b over the parts joined by NUL.

    ``derive_seed(run_seed, group, sample)`` is the seed of a trajectory,
    ``derive_seed(run_seed, purpose, group)`` that of any other random choice.
    """
    text = "\0".join(str(part) for part in parts)
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> (64 - _SEED_BITS)


def generator(*parts: int | str) -> random.Random:
    """A generator of its own for one purpose, keyed as :func:`derive_seed`."""
    return random.Random(derive_seed(*parts))
