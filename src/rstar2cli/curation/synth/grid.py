"""Geometry on the integer grid."""

from __future__ import annotations

import math
import random

from rstar2cli.curation.synth.family import Family, Params


def _circle_draw(rng: random.Random) -> Params:
    return {"n": rng.randint(30, 1200)}


def _circle_scan(p: Params) -> int:
    reach = range(-math.isqrt(p["n"]), math.isqrt(p["n"]) + 1)
    return sum(x * x + y * y <= p["n"] for x in reach for y in reach)


def _circle_jacobi(p: Params) -> int:
    """1 + 4 Σ (⌊n/(4i+1)⌋ − ⌊n/(4i+3)⌋), from Jacobi's two-square theorem."""
    n = p["n"]
    return 1 + 4 * sum(n // (4 * i + 1) - n // (4 * i + 3) for i in range(n // 4 + 1))


LATTICE_CIRCLE = Family(
    name="lattice_circle",
    topic="geometry",
    draw=_circle_draw,
    answer=_circle_scan,
    check=_circle_jacobi,
    phrasings=(
        "How many points (x, y) with integer coordinates satisfy x^2 + y^2 <= $n?",
        "Count the lattice points inside or on the circle x^2 + y^2 = $n.",
        "For how many pairs of integers (x, y), negative ones allowed, is x^2 + y^2 at most $n?",
        "A circle around the origin has squared radius $n. How many grid points with integer coordinates does the"
        " closed disk contain?",
    ),
    programs=(
        "print(sum(1 for x in range(-40, 41) for y in range(-40, 41) if x * x + y * y <= $n))",
        "count = 0\nfor x in range(-40, 41):\n    for y in range(-40, 41):\n        if x * x + y * y <= $n:\n"
        "            count += 1\nprint(count)",
    ),
    reasons=(
        "I test all points from -40 to 40.",
        "Two loops count the points in the disk.",
        "I count x, y with x^2 + y^2 <= $n.",
    ),
)


def _corner_draw(rng: random.Random) -> Params:
    a, b = sorted(rng.sample(range(2, 14), 2))
    return {"a": a, "b": b, "c": rng.randint(60, 500)}


LATTICE_TRIANGLE = Family(
    name="lattice_triangle",
    topic="geometry",
    draw=_corner_draw,
    answer=lambda p: sum(
        p["a"] * x + p["b"] * y <= p["c"] for x in range(1, p["c"] + 1) for y in range(1, p["c"] // p["b"] + 1)
    ),
    check=lambda p: sum((p["c"] - p["b"] * y) // p["a"] for y in range(1, (p["c"] - p["a"]) // p["b"] + 1)),
    phrasings=(
        "How many pairs of positive integers (x, y) satisfy ${a}x + ${b}y <= $c?",
        "Count the grid points with positive integer coordinates on or below the line ${a}x + ${b}y = $c.",
        "A pen costs $a and a book costs $b. How many combinations with at least one of each cost at most $c?",
        "Find the number of points (x, y) with integers x >= 1 and y >= 1 in the triangle ${a}x + ${b}y <= $c.",
        "For how many positive integers x and y does ${b}y + ${a}x not exceed $c?",
    ),
    programs=(
        "print(sum(1 for x in range(1, $c) for y in range(1, $c) if $a * x + $b * y <= $c))",
        "count = 0\nfor x in range(1, $c):\n    for y in range(1, $c):\n        if $a * x + $b * y <= $c:\n"
        "            count += 1\nprint(count)",
    ),
    reasons=(
        "I count all pairs from 1 within the bound.",
        "Both numbers start at 1; I test the sum.",
        "Two loops count the pairs.",
    ),
)


def _paths_draw(rng: random.Random) -> Params:
    m, n = rng.randint(3, 9), rng.randint(3, 9)
    return {"m": m, "n": n, "p": rng.randint(1, m - 1), "q": rng.randint(1, n - 1)}


def _paths_table(p: Params) -> int:
    ways = {(0, 0): 1}
    for x in range(p["m"] + 1):
        for y in range(p["n"] + 1):
            if (x, y) != (0, 0):
                ways[x, y] = ways.get((x - 1, y), 0) + ways.get((x, y - 1), 0)
            if (x, y) == (p["p"], p["q"]):
                ways[x, y] = 0
    return ways[p["m"], p["n"]]


def _paths_formula(p: Params) -> int:
    rest = math.comb(p["m"] - p["p"] + p["n"] - p["q"], p["n"] - p["q"])
    return math.comb(p["m"] + p["n"], p["n"]) - math.comb(p["p"] + p["q"], p["q"]) * rest


GRID_PATHS = Family(
    name="grid_paths",
    topic="geometry",
    draw=_paths_draw,
    answer=_paths_table,
    check=_paths_formula,
    phrasings=(
        "A robot walks on a grid from (0, 0) to ($m, $n) by unit steps right or up and must avoid the point ($p, $q)."
        " How many paths are there?",
        "How many shortest lattice paths lead from (0, 0) to ($m, $n) without passing through ($p, $q)?",
        "Moving only one unit right or one unit up, in how many ways can an ant go from the origin to ($m, $n)"
        " if ($p, $q) is blocked?",
        "Count the paths of right and up steps from (0, 0) to ($m, $n) that do not visit ($p, $q).",
    ),
    programs=(
        "from math import comb\nall_paths = comb($m + $n, $n)\n"
        "through = comb($p + $q, $q) * comb($m - $p + $n - $q, $n - $q)\nprint(all_paths - through)",
        "def f(x, y):\n    if (x, y) == ($p, $q) or x < 0 or y < 0:\n        return 0\n"
        "    return 1 if x + y == 0 else f(x - 1, y) + f(x, y - 1)\nprint(f($m, $n))",
    ),
    reasons=(
        "I count the paths that skip ($p, $q).",
        "All paths minus those through the point.",
        "The blocked point must not be used.",
    ),
)

GRID = (LATTICE_CIRCLE, LATTICE_TRIANGLE, GRID_PATHS)
