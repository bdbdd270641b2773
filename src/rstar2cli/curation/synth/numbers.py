"""Number theory: divisors, remainders, powers."""

from __future__ import annotations

import math
import random

from rstar2cli.curation.synth.family import Family, Params


def _gcd_by_subtraction(a: int, b: int) -> int:
    while a != b:
        a, b = max(a, b) - min(a, b), min(a, b)
    return a


def _common_pair(rng: random.Random) -> Params:
    shared = rng.randint(2, 24)
    a, b = sorted(rng.sample(range(3, 40), 2))
    return {"a": shared * a, "b": shared * b}


def _gcd_lcm_check(p: Params) -> int:
    common = _gcd_by_subtraction(p["a"], p["b"])
    return common + p["a"] // common * p["b"]


GCD_LCM = Family(
    name="gcd_lcm",
    topic="number theory",
    draw=_common_pair,
    answer=lambda p: math.gcd(p["a"], p["b"]) + math.lcm(p["a"], p["b"]),
    check=_gcd_lcm_check,
    phrasings=(
        "Find the sum of the greatest common divisor and the least common multiple of $a and $b.",
        "What is gcd($a, $b) + lcm($a, $b)?",
        "Add the least common multiple of $a and $b to their greatest common divisor. What is the result?",
        "Let g be the largest number dividing both $a and $b, and l the smallest positive number that both divide."
        " Compute g + l.",
        "The numbers $b and $a have a greatest common factor and a least common multiple. What is their sum?",
    ),
    programs=(
        "import math\nprint(math.gcd($a, $b) + math.lcm($a, $b))",
        "import math\ng = math.gcd($a, $b)\nprint(g + $a * $b // g)",
    ),
    reasons=(
        "I add the gcd and the lcm.",
        "The math module gives both; I add them.",
        "I compute gcd plus lcm.",
    ),
)


def _odd_part_sigma(n: int) -> tuple[int, int]:
    """Sum of the odd divisors of n, and of all its divisors, by factorization."""
    twos = 0
    while n % 2 == 0:
        n, twos = n // 2, twos + 1
    odd, factor = 1, 3
    while n > 1:
        term = power = 1
        while n % factor == 0:
            n, power = n // factor, power * factor
            term += power
        odd, factor = odd * term, factor + 2
    return odd, odd * (2 ** (twos + 1) - 1)


def _divisors_draw(rng: random.Random) -> Params:
    return {"n": 2 * rng.randint(60, 2400), "even": rng.randint(0, 1)}


def _divisors_check(p: Params) -> int:
    odd, every = _odd_part_sigma(p["n"])
    return every - odd if p["even"] else odd


DIVISOR_SUM = Family(
    name="divisor_sum",
    topic="number theory",
    draw=_divisors_draw,
    answer=lambda p: sum(d for d in range(1, p["n"] + 1) if p["n"] % d == 0 and d % 2 != p["even"]),
    check=_divisors_check,
    words=lambda p: {"parity": "even" if p["even"] else "odd", "rest": "0" if p["even"] else "1"},
    phrasings=(
        "Find the sum of all $parity divisors of $n.",
        "What do the positive $parity divisors of $n add up to?",
        "Consider the positive integers that divide $n. What is the sum of those which are $parity?",
        "Add up every $parity number that divides $n without remainder. What is the total?",
        "Omar lists the divisors of $n and keeps only the $parity ones. What is the sum of what he keeps?",
    ),
    programs=(
        "n = $n\nprint(sum(d for d in range(1, n + 1) if n % d == 0 and d % 2 == $rest))",
        "n = $n\ntotal = 0\nfor d in range(1, n + 1):\n    if n % d == 0 and d % 2 == $rest:\n"
        "        total += d\nprint(total)",
    ),
    reasons=(
        "I sum the $parity divisors in a loop.",
        "I test every d that divides $n and is $parity.",
        "Add all $parity d that divide the number.",
    ),
)


def _power_draw(rng: random.Random) -> Params:
    return {"a": rng.randint(2, 60), "b": rng.randint(12, 300), "m": rng.randint(101, 5000)}


def _power_by_steps(p: Params) -> int:
    value = 1
    for _ in range(p["b"]):
        value = value * p["a"] % p["m"]
    return value


POWER_MOD = Family(
    name="power_mod",
    topic="number theory",
    draw=_power_draw,
    answer=lambda p: pow(p["a"], p["b"], p["m"]),
    check=_power_by_steps,
    phrasings=(
        "What is the remainder when $a^$b is divided by $m?",
        "Find the remainder of $a to the power $b modulo $m.",
        "The number $a is raised to the power $b. What remainder does the result leave on division by $m?",
        "Compute $a^$b mod $m.",
        "Multiply $b copies of $a together and divide by $m. Which remainder is left?",
    ),
    programs=(
        "print(pow($a, $b, $m))",
        "print($a ** $b % $m)",
    ),
    reasons=(
        "I compute the power modulo $m.",
        "Python does modular powers directly.",
        "I take the power and its remainder.",
    ),
)


def _remainders_draw(rng: random.Random) -> Params:
    m = rng.randint(7, 40)
    k = rng.choice([value for value in range(m + 1, 60) if math.gcd(m, value) == 1])
    return {"m": m, "r": rng.randint(1, m - 1), "k": k, "s": rng.randint(1, k - 1)}


def _remainders_check(p: Params) -> int:
    steps = (p["s"] - p["r"]) * pow(p["m"], -1, p["k"]) % p["k"]
    return p["r"] + p["m"] * steps


def _remainders_search(p: Params) -> int:
    return next(n for n in range(1, p["m"] * p["k"] + 1) if n % p["m"] == p["r"] and n % p["k"] == p["s"])


TWO_REMAINDERS = Family(
    name="two_remainders",
    topic="number theory",
    draw=_remainders_draw,
    answer=_remainders_search,
    check=_remainders_check,
    phrasings=(
        "Find the smallest positive integer that leaves remainder $r when divided by $m and remainder $s when"
        " divided by $k.",
        "What is the least positive n with n mod $m = $r and n mod $k = $s?",
        "A basket of eggs leaves $r over in rows of $m and $s over in rows of $k. What is the fewest eggs it can hold?",
        "Dividing a number by $m gives remainder $r, and dividing it by $k gives remainder $s."
        " What is the smallest such positive number?",
        "Which smallest positive integer is congruent to $r modulo $m and to $s modulo $k?",
    ),
    programs=(
        "n = 1\nwhile n % $m != $r or n % $k != $s:\n    n += 1\nprint(n)",
        "for n in range(1, $m * $k + 1):\n    if n % $m == $r and n % $k == $s:\n        print(n)\n        break",
    ),
    reasons=(
        "I search for the first n with both remainders.",
        "I count up until both remainders fit.",
        "Both remainders must match, so I search.",
    ),
)

NUMBERS = (GCD_LCM, DIVISOR_SUM, POWER_MOD, TWO_REMAINDERS)
