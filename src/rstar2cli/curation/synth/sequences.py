"""Sequences: a recurrence modulo a number, the Collatz rule."""

from __future__ import annotations

import random

from rstar2cli.curation.synth.family import Family, Params


def _recurrence_draw(rng: random.Random) -> Params:
    return {
        "a": rng.randint(1, 9),
        "b": rng.randint(1, 9),
        "p": rng.randint(1, 6),
        "q": rng.randint(1, 6),
        "n": rng.randint(12, 60),
        "m": rng.randint(100, 5000),
    }


def _recurrence_steps(p: Params) -> int:
    x, y = p["a"], p["b"]
    for _ in range(p["n"] - 1):
        x, y = y, p["p"] * y + p["q"] * x
    return x % p["m"]


_Matrix = tuple[int, int, int, int]


def _times(x: _Matrix, y: _Matrix, m: int) -> _Matrix:
    return (
        (x[0] * y[0] + x[1] * y[2]) % m,
        (x[0] * y[1] + x[1] * y[3]) % m,
        (x[2] * y[0] + x[3] * y[2]) % m,
        (x[2] * y[1] + x[3] * y[3]) % m,
    )


def _recurrence_matrix(p: Params) -> int:
    """The first entry of M^(n−1) (a, b) with M = ((0, 1), (q, p)), by squaring."""
    power: _Matrix = (1, 0, 0, 1)
    base: _Matrix = (0, 1, p["q"], p["p"])
    exponent = p["n"] - 1
    while exponent:
        if exponent & 1:
            power = _times(power, base, p["m"])
        base, exponent = _times(base, base, p["m"]), exponent >> 1
    return (power[0] * p["a"] + power[1] * p["b"]) % p["m"]


RECURRENCE = Family(
    name="recurrence",
    topic="sequences",
    draw=_recurrence_draw,
    answer=_recurrence_steps,
    check=_recurrence_matrix,
    phrasings=(
        "A sequence has x_1 = $a, x_2 = $b and x_(k+2) = $p * x_(k+1) + $q * x_k."
        " What is the remainder of x_$n on division by $m?",
        "Let x_1 = $a and x_2 = $b. Each later term is $p times the term before it plus $q times the term before"
        " that. Find x_$n modulo $m.",
        "The first two terms of a sequence are $a and $b; from then on every term equals $p times the previous term"
        " plus $q times the one before. What remainder does term number $n leave when divided by $m?",
        "Given f(1) = $a, f(2) = $b, f(n) = $p * f(n-1) + $q * f(n-2), compute f($n) mod $m.",
    ),
    programs=(
        "x, y = $a, $b\nfor i in range($n - 1):\n    x, y = y, $p * y + $q * x\nprint(x % $m)",
        "x = [$a, $b]\nwhile len(x) < $n:\n    x.append($p * x[-1] + $q * x[-2])\nprint(x[$n - 1] % $m)",
    ),
    reasons=(
        "I apply the rule up to term $n.",
        "I build the terms and reduce modulo $m.",
        "Each step uses the last two terms.",
    ),
)


def _collatz_loop(p: Params) -> int:
    n, total = p["n"], 0
    while n != 1:
        total += n
        n = n // 2 if n % 2 == 0 else 3 * n + 1
    return total + 1


def _collatz_odd_steps(p: Params) -> int:
    """Odd steps of the shortcut map, each followed by all its halvings at once."""
    n, total = p["n"], 0
    while True:
        halvings = (n & -n).bit_length() - 1
        total += 2 * n - (n >> halvings)
        n >>= halvings
        if n == 1:
            return total
        n = 3 * n + 1


def _collatz_draw(rng: random.Random) -> Params:
    """A start whose terms add up to at most seven digits."""
    while True:
        params = {"n": rng.randint(20, 9999)}
        if _collatz_loop(params) < 10**7:
            return params


COLLATZ = Family(
    name="collatz_sum",
    topic="sequences",
    draw=_collatz_draw,
    answer=_collatz_loop,
    check=_collatz_odd_steps,
    phrasings=(
        "Start with $n. If the number is even, halve it; if it is odd, triple it and add 1. Stop at 1."
        " What is the sum of all numbers seen, $n and 1 included?",
        "The Collatz sequence of $n ends when it first reaches 1. Find the sum of all its terms.",
        "From $n go to n/2 when n is even and to 3n + 1 when n is odd until you arrive at 1."
        " Add all the terms, first and last included. What is the total?",
        "A counter shows $n. Each minute an even number is halved and an odd number n becomes 3n + 1, until the counter"
        " shows 1. What do all displayed numbers add up to?",
    ),
    programs=(
        "n = $n\ntotal = 1\nwhile n != 1:\n    total += n\n    n = n // 2 if n % 2 == 0 else 3 * n + 1\nprint(total)",
        "n = $n\nterms = [n]\nwhile n != 1:\n    n = 3 * n + 1 if n % 2 else n // 2\n    terms.append(n)\n"
        "print(sum(terms))",
    ),
    reasons=(
        "I follow the rule and add every term.",
        "I sum the terms until 1.",
        "A while loop does the steps and the sum.",
    ),
)

SEQUENCES = (RECURRENCE, COLLATZ)
