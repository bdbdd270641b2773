import pytest

from rstar2cli.stats.paired import mcnemar


def flips(only_a: int, only_b: int) -> tuple[list[bool], list[bool]]:
    both, neither = 3, 2
    a = [True] * only_a + [False] * only_b + [True] * both + [False] * neither
    b = [False] * only_a + [True] * only_b + [True] * both + [False] * neither
    return a, b


@pytest.mark.parametrize(
    ("only_a", "only_b", "p"),
    [
        (0, 0, 1.0),
        (0, 5, 2 / 32),
        (1, 5, 2 * (1 + 6) / 64),
        (5, 1, 2 * (1 + 6) / 64),
        (3, 3, 1.0),
        (2, 8, 2 * (1 + 10 + 45) / 1024),
    ],
)
def test_p_counted_by_hand(only_a, only_b, p):
    result = mcnemar(*flips(only_a, only_b))
    assert (result.only_a, result.only_b) == (only_a, only_b)
    assert result.p == pytest.approx(p, rel=1e-12)


def test_many_flips_do_not_overflow():
    assert 0 < mcnemar(*flips(500, 700)).p < 1e-7


def test_lengths_must_agree():
    with pytest.raises(ValueError):
        mcnemar([True], [])
