"""Algebra: a system of equations, values of a polynomial, roots modulo a number."""

from __future__ import annotations

import random

from rstar2cli.curation.synth.family import Family, Params

_ASKS = (("x * y", "x * y"), ("x^2 + y^2", "x * x + y * y"), ("3x + 5y", "3 * x + 5 * y"))


def _system_draw(rng: random.Random) -> Params:
    x, y = rng.randint(2, 60), rng.randint(2, 60)
    a, b, d, e = (rng.randint(2, 9) for _ in range(4))
    return {"a": a, "b": b, "c": a * x + b * y, "d": d, "e": e, "f": d * x - e * y, "ask": rng.randrange(3)}


def _asked(ask: int, x: int, y: int) -> int:
    return (x * y, x * x + y * y, 3 * x + 5 * y)[ask]


def _system_search(p: Params) -> int:
    x, y = next(
        (x, y)
        for x in range(1, 100)
        for y in range(1, 100)
        if p["a"] * x + p["b"] * y == p["c"] and p["d"] * x - p["e"] * y == p["f"]
    )
    return _asked(p["ask"], x, y)


def _system_cramer(p: Params) -> int:
    determinant = -p["a"] * p["e"] - p["b"] * p["d"]
    x = (-p["c"] * p["e"] - p["b"] * p["f"]) // determinant
    y = (p["a"] * p["f"] - p["c"] * p["d"]) // determinant
    return _asked(p["ask"], x, y)


LINEAR_SYSTEM = Family(
    name="linear_system",
    topic="algebra",
    draw=_system_draw,
    answer=_system_search,
    check=_system_cramer,
    words=lambda p: {"asked": _ASKS[p["ask"]][0], "expression": _ASKS[p["ask"]][1]},
    phrasings=(
        "Positive integers x and y satisfy ${a}x + ${b}y = $c and ${d}x - ${e}y = $f. What is $asked?",
        "Solve the system ${a}x + ${b}y = $c, ${d}x - ${e}y = $f in positive integers and give $asked.",
        "If ${a}x + ${b}y = $c and ${d}x - ${e}y = $f, where x and y are positive integers, find $asked.",
        "Two positive integers x, y fulfil the equations ${d}x - ${e}y = $f and ${a}x + ${b}y = $c. Compute $asked.",
    ),
    programs=(
        "for x in range(1, 100):\n    for y in range(1, 100):\n"
        "        if $a * x + $b * y == $c and $d * x - $e * y == $f:\n            print($expression)",
        "print([$expression for x in range(1, 100) for y in range(1, 100)"
        " if $a * x + $b * y == $c and $d * x - $e * y == $f][0])",
    ),
    reasons=(
        "I search x and y in both equations.",
        "Two loops find x and y; then $asked.",
        "I try all pairs and print $asked.",
    ),
)


def _polynomial_draw(rng: random.Random) -> Params:
    low = rng.randint(1, 20)
    return {
        "a": rng.randint(2, 9),
        "b": rng.randint(2, 12),
        "c": rng.randint(1, 30),
        "low": low,
        "high": low + rng.randint(8, 60),
    }


def _polynomial_formula(p: Params) -> int:
    def up_to(n: int) -> int:
        return p["a"] * n * (n + 1) * (2 * n + 1) // 6 + p["b"] * n * (n + 1) // 2 + p["c"] * n

    return up_to(p["high"]) - up_to(p["low"] - 1)


POLYNOMIAL_SUM = Family(
    name="polynomial_sum",
    topic="algebra",
    draw=_polynomial_draw,
    answer=lambda p: sum(p["a"] * x * x + p["b"] * x + p["c"] for x in range(p["low"], p["high"] + 1)),
    check=_polynomial_formula,
    words=lambda p: {"second": str(p["low"] + 1)},
    phrasings=(
        "Let f(x) = ${a}x^2 + ${b}x + $c. What is f($low) + f($second) + ... + f($high)?",
        "Find the sum of ${a}x^2 + ${b}x + $c over all integers x from $low to $high.",
        "For f(x) = ${a}x^2 + ${b}x + $c, add up the values f(x) for x = $low, ..., $high. What is the total?",
        "A plant grows ${a}x^2 + ${b}x + $c units in week x. How much does it grow from week $low to week $high,"
        " both included?",
        "Compute the sum of the polynomial ${a}x^2 + ${b}x + $c at every integer x with $low <= x <= $high.",
    ),
    programs=(
        "print(sum($a * x**2 + $b * x + $c for x in range($low, $high + 1)))",
        "total = 0\nfor x in range($low, $high + 1):\n    total += $a * x * x + $b * x + $c\nprint(total)",
    ),
    reasons=(
        "I add f(x) from $low to $high.",
        "I sum the polynomial over the range.",
        "A loop adds the values, $high included.",
    ),
)


def _roots_draw(rng: random.Random) -> Params:
    m = rng.randint(3, 19)
    b, root = rng.randint(1, 12), rng.randrange(m)
    return {"b": b, "c": -(root * root + b * root) % m + m, "m": m, "n": rng.randint(100, 1500)}


def _roots_by_period(p: Params) -> int:
    """The sum over whole periods of each root's class, by the formula of an arithmetic series."""
    total = 0
    for root in range(1, p["m"] + 1):
        if (root * (root + p["b"]) + p["c"]) % p["m"] == 0 and root <= p["n"]:
            terms = (p["n"] - root) // p["m"] + 1
            total += terms * root + p["m"] * terms * (terms - 1) // 2
    return total


ROOTS_MOD = Family(
    name="roots_mod",
    topic="algebra",
    draw=_roots_draw,
    answer=lambda p: sum(x for x in range(1, p["n"] + 1) if (x * x + p["b"] * x + p["c"]) % p["m"] == 0),
    check=_roots_by_period,
    phrasings=(
        "Find the sum of all integers x from 1 to $n for which x^2 + ${b}x + $c is divisible by $m.",
        "For which x in 1, ..., $n does $m divide x^2 + ${b}x + $c? Give the sum of these x.",
        "What is the sum of the positive integers x <= $n such that x^2 + ${b}x + $c is a multiple of $m?",
        "Add all x between 1 and $n (inclusive) with x^2 + ${b}x + $c = 0 modulo $m. What is the result?",
    ),
    programs=(
        "print(sum(x for x in range(1, $n + 1) if (x**2 + $b * x + $c) % $m == 0))",
        "total = 0\nfor x in range(1, $n + 1):\n    if (x * x + $b * x + $c) % $m == 0:\n"
        "        total += x\nprint(total)",
    ),
    reasons=(
        "I test every x and add those that fit.",
        "I sum the x whose value $m divides.",
        "Check each x modulo $m and add.",
    ),
)

ALGEBRA = (LINEAR_SYSTEM, POLYNOMIAL_SUM, ROOTS_MOD)
