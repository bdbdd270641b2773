from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rstar2cli.answers.glyphs import ascii_math
from rstar2cli.answers.spelling import clean


@pytest.mark.parametrize(
    "text, spelled",
    [
        (r"\dfrac12", r"\frac{1}{2}"),
        (r"\frac1{x}", r"\frac{1}{x}"),
        (r"\sqrt3", r"\sqrt{3}"),
        ("x²", "x^{2}"),
        ("√2", r"\sqrt{2}"),
        ("x_1", "x_{1}"),
        (r"\left( 1, 2 \right]", "( 1, 2 ]"),
        (r"\boxed{7}", "7"),
        (r"\fbox{\boxed{7}}", "7"),
        ("$$7$$", "7"),
        (r"\text{Monday}", r"\text{Monday}"),
        (r"\textbf{A}", "A"),
        (r"\mathrm{m}", r"\text{m}"),
        ("9**2", "9^{2}"),
        ("x >= 5", r"x \ge 5"),
        (r"{n \choose 2}", r"\binom{n}{2}"),
        ("it costs $5 and $6", "it costs $5 and $6"),
        ("the area $x+1$ is", "the area x+1 is"),
        (r"\begin{pmatrix}1\\ 2\end{pmatrix}", r"\begin{pmatrix}1\\ 2\end{pmatrix}"),
        ("7\u200b", "7"),
    ],
)
def test_one_spelling(text: str, spelled: str) -> None:
    assert clean(text) == spelled


@given(st.text(max_size=100))
def test_no_text_raises(text: str) -> None:
    clean(text)


@pytest.mark.parametrize("text", ["{" * 1000, r"\frac" * 200, r"\frac{1}{" * 100, "^" * 1000, "√" * 500, "$" * 1000])
def test_broken_latex_is_no_trouble(text: str) -> None:
    clean(text)


def test_plain_ascii_is_left_alone() -> None:
    assert ascii_math("a b+c") == "a b+c"
