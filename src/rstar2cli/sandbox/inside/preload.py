"""What each kind of warm process has loaded, and run once, before calls are forked from it.

Importing is not enough: sympy fills its caches and tables as it is first used, which costs a call
ten times more than what it asks for. A fork costs by the size of the process, so code gets the
smallest that has what it imports.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import re
from collections.abc import Callable

SMALL, NUMPY, SYMPY, LARGE = "small", "numpy", "sympy", "large"
KINDS = (SMALL, NUMPY, SYMPY, LARGE)
_STANDARD = (
    *("abc", "bisect", "cmath", "collections", "contextlib", "copy", "dataclasses", "datetime", "decimal", "enum"),
    *("fractions", "functools", "heapq", "io", "itertools", "json", "math", "numbers", "operator", "random", "re"),
    *("statistics", "string", "textwrap", "threading", "time", "traceback", "types", "typing"),
)
"""Loaded in all of them: what most programs import, and cheap to hold."""
_IMPORTS = {
    NUMPY: ("numpy",),
    SYMPY: ("sympy", "mpmath"),
    LARGE: ("scipy", "pandas", "networkx", "matplotlib", "numpy", "sympy", "mpmath"),
}
_LARGEST_PARSED = 200_000


def kind_of(code: str) -> str:
    """The kind of warm process for this code, by the imports in its syntax tree."""
    if not _mentions(code) or len(code) > _LARGEST_PARSED:
        return SMALL
    try:
        names = _imported(ast.parse(code))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return SMALL
    heavy = names & {name for imports in _IMPORTS.values() for name in imports}
    for kind in (SMALL, NUMPY, SYMPY):
        if heavy <= set(_IMPORTS.get(kind, ())):
            return kind
    return LARGE


_mention = re.compile(r"\b(?:" + "|".join(sorted(_IMPORTS[LARGE])) + r")\b")


def _mentions(code: str) -> bool:
    """Whether it is worth parsing."""
    return "import" in code and _mention.search(code) is not None


def _imported(tree: ast.AST) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def load(kind: str) -> list[str]:
    """Load and exercise what ``kind`` holds; says what went wrong with packages that are there but broken."""
    for name in _STANDARD:
        importlib.import_module(name)
    failures = []
    for name in _IMPORTS.get(kind, ()):
        try:
            if importlib.util.find_spec(name) is None:
                continue  # not among the packages of this host
            importlib.import_module(name)
            if name in _EXERCISES:
                _EXERCISES[name]()
        except Exception as error:  # noqa: BLE001 - a broken package must not take the others with it
            failures.append(f"{name}: {error!r}")
    return failures


def _numpy() -> None:
    import numpy as np

    matrix = np.eye(3) + np.arange(9.0).reshape(3, 3) / 10
    np.linalg.solve(matrix, np.ones(3)), np.linalg.eigh(matrix), np.linalg.svd(matrix), np.linalg.inv(matrix)
    np.random.default_rng(0).normal(size=4), np.fft.fft(matrix), np.polyfit([0, 1, 2], [0, 1, 4], 2)
    str(matrix), repr(np.float64(0.5)), np.sort(matrix), np.cumsum(matrix), np.einsum("ij,jk", matrix, matrix)


def _sympy() -> None:
    import sympy as sp

    x, y, n = sp.symbols("x y n")
    k = sp.Symbol("k", integer=True, positive=True)
    sp.solve(x**2 - 5 * x + 6, x), sp.solve(x**3 - 2 * x + 1, x), sp.solve([x + y - 3, x - y - 1], [x, y])
    sp.solve(sp.sin(x) - sp.Rational(1, 2), x), sp.solveset(x**2 - 4, x, sp.S.Reals), sp.nsolve(sp.cos(x) - x, 1)
    sp.simplify(sp.sin(x) ** 2 + sp.cos(x) ** 2 + (x**2 - 1) / (x - 1)), sp.factor(x**4 - 1), sp.expand((x + y) ** 5)
    sp.integrate(x * sp.exp(x), x), sp.integrate(sp.sin(x), (x, 0, sp.pi)), sp.diff(sp.log(x) * x, x)
    sp.limit(sp.sin(x) / x, x, 0), sp.series(sp.exp(x), x, 0, 4), sp.summation(k**2, (k, 1, n))
    sp.Matrix([[1, 2], [3, 4]]).eigenvals(), sp.Matrix([[2, 1], [1, 3]]).inv(), sp.factorint(360), sp.isprime(97)
    sp.nsimplify("0.75"), sp.sqrt(8), sp.N(sp.pi, 30), sp.Rational(3, 4).evalf(), sp.diophantine(3 * x + 5 * y - 1)
    sp.latex(x**2 / y), str(sp.sqrt(x) / 2), sp.pretty(x**2), sp.sympify("x**2 + 1"), sp.lambdify(x, x**2, "math")(2)
    (
        sp.binomial(n, 2),
        sp.divisors(60),
        sp.totient(30),
        sp.gcd(12, 18),
        sp.apart(1 / (x * (x + 1))),
        sp.together(1 / x + 1),
    )
    with contextlib.suppress(NotImplementedError):
        sp.solve(x**2 < 4, x)


def _mpmath() -> None:
    import mpmath

    mpmath.quad(mpmath.sin, [0, 1]), mpmath.findroot(mpmath.cos, 1), mpmath.zeta(2), mpmath.mpf("0.1")


def _scipy() -> None:
    for name in ("linalg", "optimize", "integrate", "special", "stats", "sparse", "interpolate", "spatial"):
        importlib.import_module(f"scipy.{name}")


def _pandas() -> None:
    import pandas as pd

    frame = pd.DataFrame({"a": [1, 2, 2], "b": [0.5, 1.5, 2.5]})
    frame.groupby("a").mean(), frame.describe(), str(frame), frame.sort_values("b")


def _networkx() -> None:
    import networkx as nx

    graph = nx.path_graph(4)
    nx.shortest_path(graph, 0, 3), nx.connected_components(graph), nx.adjacency_matrix


def _matplotlib() -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.plot([0, 1], [1, 0])
    pyplot.close("all")


_EXERCISES: dict[str, Callable[[], None]] = {
    "numpy": _numpy,
    "sympy": _sympy,
    "mpmath": _mpmath,
    "scipy": _scipy,
    "pandas": _pandas,
    "networkx": _networkx,
    "matplotlib": _matplotlib,
}
"""In the order of the imports, each run once."""
