from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from chatml import byte_tokenizer


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    return byte_tokenizer()
