from __future__ import annotations

from rstar2cli.sandbox.endpoints import Endpoint, Endpoints


def pair() -> tuple[Endpoints, Endpoint, Endpoint, list[float]]:
    now = [100.0]
    first, second = Endpoint("a"), Endpoint("b")
    return Endpoints([first, second], clock=lambda: now[0]), first, second, now


def test_the_least_busy_is_next() -> None:
    endpoints, first, second, _ = pair()
    first.outstanding = 3
    assert endpoints.best() is second
    assert endpoints.best([second]) is first
    assert endpoints.best([first, second]) is None


def test_one_that_fails_is_left_alone_longer_each_time_and_comes_back() -> None:
    endpoints, first, second, now = pair()
    pauses = []
    for _ in range(9):
        endpoints.failed(first, "refused")
        endpoints.failed(first, "refused")  # many calls meet the same failure
        pauses.append(first.down_until - now[0])
        assert endpoints.best([second]) is None
        now[0] = first.down_until
        assert endpoints.best([second]) is first
    assert pauses == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert endpoints.troubles() == "a: refused"
    endpoints.worked(first)
    assert first.failures == 0 and endpoints.troubles() == ""
