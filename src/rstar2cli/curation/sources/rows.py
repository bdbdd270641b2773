"""Raw rows of any source, before they are known to be problems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from rstar2cli.shards.rejects import RAW_CHARS, Reject


@dataclass(frozen=True)
class Row:
    """One row."""

    file: str
    """File or set it came from."""
    line: int
    """Its line or row, from 1."""
    values: dict[str, Any]
    """Columns by name."""

    def rejected(self, reason: str) -> Reject:
        """This row as a reject."""
        raw = msgspec.json.encode(self.values, enc_hook=str).decode(errors="replace")
        return Reject(file=self.file, line=self.line, reason=reason, raw=raw[:RAW_CHARS])
