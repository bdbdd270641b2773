"""How an output was made: enough to judge it, and to make it again."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

import rstar2cli

_BLOCK = 1 << 20


class Lineage(msgspec.Struct, kw_only=True):
    """Kept in every part's footer and in the manifest; outside the digest of sameness."""

    command: list[str]
    """Command line."""
    config: dict[str, Any]
    """Resolved configuration."""
    inputs: dict[str, str]
    """Input as given → its digest (see :func:`input_digests`)."""
    model: str | None = None
    """Digest of the model's weights; null if no model took part."""
    code: str = ""
    """Version of rstar2 (:func:`code_version`)."""
    seed: int | None = None
    """Run seed; null if nothing was random."""


def make_lineage(
    *, command: list[str], config: dict[str, Any], inputs: Sequence[str], model: str | None, seed: int | None
) -> Lineage:
    """The lineage of an output that is being made now by this code from these inputs."""
    return Lineage(
        command=command, config=config, inputs=input_digests(inputs), model=model, code=code_version(), seed=seed
    )


def code_version() -> str:
    """Version of rstar2."""
    return rstar2cli.__version__


def input_digests(inputs: Sequence[str]) -> dict[str, str]:
    """A digest of each input: its data digest for complete shard directories, else of the bytes of its files.

    ``-`` and names like ``synth:`` that are no files are `stream` and `builtin`; ``NAME:FILE`` is that of FILE.
    """
    from rstar2cli.shards.manifest import read_manifest
    from rstar2cli.shards.resolve import resolve

    digests = {}
    for name in inputs:
        if name == "-":
            digests[name] = "stream"
            continue
        path = Path(name)
        if ":" in name and not path.exists():
            behind = Path(name.partition(":")[2])  # NAME:FILE of a benchmark
            digests[name] = file_digest([behind]) if behind.is_file() else "builtin"
            continue
        manifest = read_manifest(path) if path.is_dir() else None
        digests[name] = manifest.digest if manifest else file_digest([source.path for source in resolve([name])])
    return digests


def file_digest(paths: Sequence[Path]) -> str:
    """blake2b over the bytes of files in order, each preceded by its size."""
    digest = hashlib.blake2b(digest_size=32)
    for path in paths:
        digest.update(path.stat().st_size.to_bytes(8, "big"))
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    return digest.hexdigest()
