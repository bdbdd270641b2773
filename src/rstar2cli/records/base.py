"""What all records share: a kind with a version, and the marked number types."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1, extra={"arrow": "int32"})]
"""An integer stored in 32 bits (token ids)."""
Float32 = Annotated[float, msgspec.Meta(extra={"arrow": "float32"})]
"""A number stored in 32 bits (log-probs)."""
Json = dict[str, Any]
"""A JSON object; stored as text in Parquet, as an object in JSONL."""


class Record(msgspec.Struct, kw_only=True, tag_field="kind", forbid_unknown_fields=True):
    """Base of every record. A subclass is tagged ``name/version`` and sets ``record_name`` and ``record_version``."""

    record_name: ClassVar[str]
    record_version: ClassVar[int]
    volatile: ClassVar[tuple[str, ...]] = ()
    """Dotted fields outside the digest of sameness (seconds, timings)."""

    @classmethod
    def kind(cls) -> str:
        """The tag in files: ``trajectory/1``."""
        return f"{cls.record_name}/{cls.record_version}"
