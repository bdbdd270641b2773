"""What is generated is current."""

from __future__ import annotations

from pathlib import Path

import pytest

from rstar2cli.cli.reference import pages

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


@pytest.mark.parametrize("name", list(pages()))
def test_reference_pages_are_current(name):
    assert (REFERENCE / name).read_text(encoding="utf-8") == pages()[name], "stale: run `just docs`"
