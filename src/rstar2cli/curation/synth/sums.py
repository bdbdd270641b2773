"""Sums over ranges of integers."""

from __future__ import annotations

import math
import random

from rstar2cli.curation.synth.family import Family, Params


def _triangle(n: int) -> int:
    return n * (n + 1) // 2


def _multiples_up_to(step: int, last: int) -> int:
    """Sum of the multiples of ``step`` up to ``last``."""
    return step * _triangle(last // step)


def _two_divisors(rng: random.Random) -> Params:
    a = rng.randint(3, 11)
    b = rng.choice([value for value in range(a + 1, 14) if value % a])
    return {"a": a, "b": b, "n": rng.randint(120, 1500)}


def _either_formula(p: Params) -> int:
    last = p["n"] - 1
    both = math.lcm(p["a"], p["b"])
    return _multiples_up_to(p["a"], last) + _multiples_up_to(p["b"], last) - _multiples_up_to(both, last)


MULTIPLES_SUM = Family(
    name="multiples_sum",
    topic="sums",
    draw=_two_divisors,
    answer=lambda p: sum(i for i in range(1, p["n"]) if i % p["a"] == 0 or i % p["b"] == 0),
    check=_either_formula,
    phrasings=(
        "Find the sum of all positive integers below $n that are divisible by $a or $b.",
        "What is the sum of the multiples of $a or $b that are less than $n?",
        "Add up every positive integer smaller than $n which is a multiple of $a or of $b. What is the total?",
        "Consider the natural numbers less than $n. What is the sum of those divisible by at least one of $a and $b?",
        "Mia writes down each positive integer under $n that $a or $b divides. What do her numbers add up to?",
    ),
    programs=(
        "print(sum(i for i in range(1, $n) if i % $a == 0 or i % $b == 0))",
        "total = 0\nfor i in range(1, $n):\n    if i % $a == 0 or i % $b == 0:\n        total += i\nprint(total)",
    ),
    reasons=(
        "I add the numbers below $n that $a or $b divides.",
        "I test both divisors and sum the hits.",
        "Divisible by $a or by $b: a loop adds them.",
    ),
)


def _divisible_not_draw(rng: random.Random) -> Params:
    a = rng.randint(2, 9)
    b = rng.choice([value for value in range(2, 12) if a % value])
    return {"a": a, "b": b, "n": rng.randint(120, 1500)}


DIVISIBLE_NOT = Family(
    name="divisible_not",
    topic="sums",
    draw=_divisible_not_draw,
    answer=lambda p: sum(i for i in range(1, p["n"] + 1) if i % p["a"] == 0 and i % p["b"] != 0),
    check=lambda p: _multiples_up_to(p["a"], p["n"]) - _multiples_up_to(math.lcm(p["a"], p["b"]), p["n"]),
    phrasings=(
        "Find the sum of the integers from 1 to $n that are divisible by $a but not by $b.",
        "What do all multiples of $a up to $n (inclusive) that are not multiples of $b add up to?",
        "Among the numbers 1, 2, ..., $n, take those divisible by $a and not divisible by $b. What is their sum?",
        "From the multiples of $a not exceeding $n, remove every multiple of $b. What is the sum of the rest?",
        "Leo keeps the positive integers up to and including $n that $a divides and $b does not. Find their total.",
    ),
    programs=(
        "print(sum(i for i in range(1, $n + 1) if i % $a == 0 and i % $b != 0))",
        "total = 0\nfor i in range(1, $n + 1):\n    if i % $a == 0 and i % $b != 0:\n        total += i\nprint(total)",
    ),
    reasons=(
        "I add multiples of $a that $b does not divide.",
        "Two conditions to test, up to $n inclusive.",
        "Keep multiples of $a, skip multiples of $b.",
    ),
)


def _sieve(last: int) -> list[int]:
    """Primes up to ``last``."""
    flags = bytearray([1]) * (last + 1)
    flags[:2] = b"\0\0"
    for i in range(2, math.isqrt(last) + 1):
        if flags[i]:
            flags[i * i :: i] = bytes(len(range(i * i, last + 1, i)))
    return [i for i, flag in enumerate(flags) if flag]


def _prime_range(rng: random.Random) -> Params:
    low = rng.randint(10, 800)
    return {"low": low, "high": low + rng.randint(30, 250)}


PRIME_SUM = Family(
    name="prime_sum",
    topic="sums",
    draw=_prime_range,
    answer=lambda p: sum(n for n in range(p["low"], p["high"] + 1) if all(n % d for d in range(2, n))),
    check=lambda p: sum(prime for prime in _sieve(p["high"]) if prime >= p["low"]),
    phrasings=(
        "What is the sum of all prime numbers from $low to $high?",
        "Find the sum of the primes p with $low <= p <= $high.",
        "Add all primes between $low and $high, both ends included. What do you get?",
        "Which number is the total of all prime numbers that are at least $low and at most $high?",
        "Nora lists the primes in the interval [$low, $high]. What is the sum of her list?",
    ),
    programs=(
        "print(sum(n for n in range($low, $high + 1) if all(n % d for d in range(2, n))))",
        "total = 0\nfor n in range($low, $high + 1):\n    if all(n % d for d in range(2, n)):\n"
        "        total += n\nprint(total)",
    ),
    reasons=(
        "I test each number for being prime and add.",
        "I add the primes by trial division.",
        "A prime has no divisor from 2 up; I sum them.",
    ),
)

SUMS = (MULTIPLES_SUM, DIVISIBLE_NOT, PRIME_SUM)
