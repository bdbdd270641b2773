"""Counting: coins, subsets, integer triangles."""

from __future__ import annotations

import random
from itertools import combinations

from rstar2cli.curation.synth.family import Family, Params


def _coins_draw(rng: random.Random) -> Params:
    a, b, c = sorted(rng.sample(range(2, 26), 3))
    return {"a": a, "b": b, "c": c, "n": rng.randint(80, 300)}


def _coins_loops(p: Params) -> int:
    n = p["n"]
    return sum((n - x - y) % p["a"] == 0 for x in range(0, n + 1, p["c"]) for y in range(0, n - x + 1, p["b"]))


def _coins_table(p: Params) -> int:
    ways = [1] + [0] * p["n"]
    for coin in (p["a"], p["b"], p["c"]):
        for total in range(coin, p["n"] + 1):
            ways[total] += ways[total - coin]
    return ways[p["n"]]


def _coins_checked_draw(rng: random.Random) -> Params:
    """Coins that can pay the amount in at least three ways."""
    while True:
        params = _coins_draw(rng)
        if _coins_table(params) >= 3:
            return params


COINS = Family(
    name="coins",
    topic="counting",
    draw=_coins_checked_draw,
    answer=_coins_loops,
    check=_coins_table,
    phrasings=(
        "In how many ways can $n cents be paid with coins of $a, $b and $c cents?",
        "How many triples of non-negative integers (x, y, z) satisfy ${a}x + ${b}y + ${c}z = $n?",
        "A shop sells packs of $a, $b and $c nails. In how many ways can one buy exactly $n nails?",
        "There are coins worth $a, $b and $c. Count the ways to make $n, where order does not matter.",
        "Find the number of ways to write $n as a sum of any number of $a's, $b's and $c's, ignoring order.",
    ),
    programs=(
        "n = $n\nprint(sum(1 for x in range(0, n + 1, $c) for y in range(0, n + 1 - x, $b) if (n - x - y) % $a == 0))",
        "ways = [1] + [0] * $n\nfor c in ($a, $b, $c):\n    for t in range(c, $n + 1):\n"
        "        ways[t] += ways[t - c]\nprint(ways[$n])",
    ),
    reasons=(
        "I try all amounts of two kinds and test the third.",
        "I count the ways to build $n.",
        "Loops over the coins count the ways.",
    ),
)


def _subsets_draw(rng: random.Random) -> Params:
    return {"n": rng.randint(9, 20), "k": rng.randint(3, 5), "m": rng.randint(3, 13)}


def _subsets_table(p: Params) -> int:
    """Subsets of {1..n} with k elements and sum 0 modulo m, element by element."""
    table = [[0] * p["m"] for _ in range(p["k"] + 1)]
    table[0][0] = 1
    for element in range(1, p["n"] + 1):
        for size in range(p["k"], 0, -1):
            for rest in range(p["m"]):
                table[size][(rest + element) % p["m"]] += table[size - 1][rest]
    return table[p["k"]][0]


SUBSETS = Family(
    name="subsets",
    topic="counting",
    draw=_subsets_draw,
    answer=lambda p: sum(sum(s) % p["m"] == 0 for s in combinations(range(1, p["n"] + 1), p["k"])),
    check=_subsets_table,
    phrasings=(
        "How many subsets of {1, 2, ..., $n} with exactly $k elements have a sum divisible by $m?",
        "From the numbers 1 to $n, $k different ones are chosen. For how many choices is their sum a multiple of $m?",
        "Count the $k-element subsets of the integers from 1 to $n whose elements add up to a multiple of $m.",
        "A box holds balls numbered 1 to $n. In how many ways can one take $k balls so that $m divides their total?",
        "In how many ways can $k distinct numbers be picked from 1, ..., $n so that their sum leaves no remainder"
        " on division by $m?",
    ),
    programs=(
        "from itertools import combinations\n"
        "print(sum(1 for s in combinations(range(1, $n + 1), $k) if sum(s) % $m == 0))",
        "from itertools import combinations\ncount = 0\nfor s in combinations(range(1, $n + 1), $k):\n"
        "    if sum(s) % $m == 0:\n        count += 1\nprint(count)",
    ),
    reasons=(
        "I test the sum of every combination of $k.",
        "combinations lists the choices; I count.",
        "I count choices with sum divisible by $m.",
    ),
)


def _perimeter_draw(rng: random.Random) -> Params:
    low = rng.randint(20, 300)
    return {"p": low, "a": rng.randint(1, low // 4)}


def _triangles_loop(q: Params) -> int:
    p, count = q["p"], 0
    for a in range(q["a"], p // 3 + 1):
        for b in range(a, (p - a) // 2 + 1):
            count += a + b > p - a - b
    return count


def _triangles_formula(q: Params) -> int:
    """For each shortest side the number of middle sides is a difference of two bounds."""
    p, count = q["p"], 0
    for a in range(q["a"], p // 3 + 1):
        least = max(a, p // 2 - a + 1)
        count += max(0, (p - a) // 2 - least + 1)
    return count


TRIANGLES = Family(
    name="triangles",
    topic="counting",
    draw=_perimeter_draw,
    answer=_triangles_loop,
    check=_triangles_formula,
    phrasings=(
        "How many different triangles with integer sides have perimeter $p and no side shorter than $a?",
        "Count the triples of integers a <= b <= c with a >= $a, a + b + c = $p and a + b > c.",
        "The sides of a triangle are whole numbers, each at least $a, and its perimeter is $p."
        " How many such triangles exist up to congruence?",
        "A wire of length $p is bent into a triangle whose side lengths are integers not less than $a."
        " How many different triangles are possible?",
    ),
    programs=(
        "count = 0\nfor a in range($a, $p):\n    for b in range(a, $p - a):\n"
        "        if b <= $p - a - b < a + b:\n            count += 1\nprint(count)",
        "print(sum(1 for a in range($a, $p) for b in range(a, $p - a) if b <= $p - a - b < a + b))",
    ),
    reasons=(
        "I loop over two sides and check the third.",
        "The third side follows; I test a + b > c.",
        "I count sides a <= b <= c from $a.",
    ),
)

COUNTING = (COINS, SUBSETS, TRIANGLES)
