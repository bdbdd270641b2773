"""Predicates on decimal digits."""

from __future__ import annotations

import random
from functools import cache

from rstar2cli.curation.synth.family import Family, Params


@cache
def _strings_with_sum(length: int, total: int) -> int:
    """Digit strings of the length, leading zeros allowed, with that digit sum."""
    if length == 0:
        return int(total == 0)
    return sum(_strings_with_sum(length - 1, total - digit) for digit in range(min(9, total) + 1))


def _count_with_sum(last: int, total: int) -> int:
    """Numbers from 0 to ``last`` with the digit sum, place by place."""
    text, count, left = str(last), 0, total
    for place, digit in enumerate(map(int, text)):
        count += sum(_strings_with_sum(len(text) - place - 1, left - d) for d in range(min(digit, left + 1)))
        left -= digit
        if left < 0:
            return count
    return count + int(left == 0)


def _digit_sum_draw(rng: random.Random) -> Params:
    return {"n": rng.randint(400, 9999), "s": rng.randint(5, 20)}


DIGIT_SUM_COUNT = Family(
    name="digit_sum_count",
    topic="number theory",
    draw=_digit_sum_draw,
    answer=lambda p: sum(sum(map(int, str(i))) == p["s"] for i in range(1, p["n"] + 1)),
    check=lambda p: _count_with_sum(p["n"], p["s"]),
    phrasings=(
        "How many integers from 1 to $n have a digit sum of $s?",
        "Find the number of positive integers up to $n whose digits add up to $s.",
        "Count the numbers in 1, 2, ..., $n for which the sum of the decimal digits equals $s.",
        "A ticket number between 1 and $n (inclusive) wins if its digits sum to $s. How many tickets win?",
        "For how many integers k with 1 <= k <= $n is the sum of the digits of k exactly $s?",
    ),
    programs=(
        "print(sum(1 for i in range(1, $n + 1) if sum(map(int, str(i))) == $s))",
        "count = 0\nfor i in range(1, $n + 1):\n    if sum(int(c) for c in str(i)) == $s:\n"
        "        count += 1\nprint(count)",
    ),
    reasons=(
        "I count the numbers with digit sum $s.",
        "Strings give the digits; I count sums of $s.",
        "I add the digits of each number and count.",
    ),
)


def _contains_draw(rng: random.Random) -> Params:
    return {"n": rng.randint(80, 1500), "d": rng.randint(1, 9)}


def _numbers_without(last: int, digit: int) -> list[int]:
    """Positive numbers up to ``last`` without the digit, grown digit by digit."""
    found: list[int] = []
    layer = [d for d in range(1, 10) if d != digit and d <= last]
    while layer:
        found += layer
        layer = [10 * n + d for n in layer for d in range(10) if d != digit and 10 * n + d <= last]
    return found


DIGIT_CONTAINS = Family(
    name="digit_contains",
    topic="number theory",
    draw=_contains_draw,
    answer=lambda p: sum(i for i in range(1, p["n"] + 1) if str(p["d"]) in str(i)),
    check=lambda p: p["n"] * (p["n"] + 1) // 2 - sum(_numbers_without(p["n"], p["d"])),
    phrasings=(
        "What is the sum of all integers from 1 to $n that contain the digit $d?",
        "Find the total of the positive integers not exceeding $n in which the digit $d appears.",
        "Write down the numbers 1 to $n and keep those with at least one digit $d. What do they add up to?",
        "Add every integer between 1 and $n, inclusive, that has a $d among its digits. What is the sum?",
        "Ida collects house numbers from 1 to $n that show the digit $d. What is the sum of her numbers?",
    ),
    programs=(
        "print(sum(i for i in range(1, $n + 1) if '$d' in str(i)))",
        "total = 0\nfor i in range(1, $n + 1):\n    if '$d' in str(i):\n        total += i\nprint(total)",
    ),
    reasons=(
        "I add the numbers whose text has a $d.",
        "I look for the digit in str(i) and sum.",
        "Sum all i that contain the digit.",
    ),
)

DIGITS = (DIGIT_SUM_COUNT, DIGIT_CONTAINS)
