from __future__ import annotations

from collections.abc import Iterator

import pytest

from rstar2cli.grading.grade import Grader


@pytest.fixture(scope="session")
def grader() -> Iterator[Grader]:
    with Grader() as made:
        yield made
