from __future__ import annotations

import pytest

from rstar2cli.answers.caps import refusal
from rstar2cli.answers.spelling import clean


@pytest.mark.parametrize(
    "text, reason",
    [
        (r"\frac{1+\sqrt{5}}{2}", None),
        (r"e^{x^{2}}", None),
        (r"2^{n+1}+x_{1}", None),
        (r"\sum_{k=1}^{n} k^{2}", None),
        ("9^{9^{9^9}}", "over_cap"),
        ("9**9**9**9", "over_cap"),
        ("10^{10^{10}}", "over_cap"),
        ("x^{100000}", "over_cap"),
        ("7^{e^{e^{e^{10e}}}}+1", "over_cap"),
        ("1000000000!", "over_cap"),
        ("((9!)!)!+x", "over_cap"),
        (r"\binom{10^{9}}{5}", "over_cap"),
        (r"\sum_{k=1}^{10^{9}} k", "over_cap"),
        ("x+" + "1" * 500, "over_cap"),
        ("(" * 50 + "x" + ")" * 50, "over_cap"),
        (r"\input{/etc/passwd}", "unparseable"),
        (r"\operatorname{zeros}(10^9)", "unparseable"),
        ('__import__("os")', "unparseable"),
        ("lambda x: x", "unparseable"),
        ("x @ y", "unparseable"),
        ("(x", "unparseable"),
    ],
)
def test_what_a_parser_may_see(text: str, reason: str | None) -> None:
    assert refusal(clean(text)) == reason
