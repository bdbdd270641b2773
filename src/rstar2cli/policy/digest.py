"""Digests of weights: over sorted (name, dtype, shape, bytes), tied aliases left out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

_HEAD = "lm_head.weight"
_SHOWN = 16


def weights_digest(weights: Iterable[tuple[str, Tensor]]) -> str:
    """First 16 hex digits of the blake2b over the named tensors, in the order of their names."""
    hasher = hashlib.blake2b(digest_size=32)
    for name, tensor in sorted(weights, key=lambda item: item[0]):
        _feed(hasher, name, tensor)
    return hasher.hexdigest()[:_SHOWN]


def model_digest(model: Any, dtype: torch.dtype | None = None) -> str:
    """The digest that a checkpoint of this model has when it is saved (as ``dtype``, if given)."""
    named = sorted(model.named_parameters(), key=lambda item: item[0])  # a tied head is not named again
    hasher = hashlib.blake2b(digest_size=32)
    for name, parameter in named:
        tensor = parameter.detach()
        _feed(hasher, name, tensor if dtype is None else tensor.to(dtype))
    return hasher.hexdigest()[:_SHOWN]


def checkpoint_digest(directory: Path) -> str:
    """The digest of the weights in a model directory, read file by file."""
    config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    places: dict[str, Path] = {}
    for file in sorted(directory.glob("*.safetensors")):
        with safe_open(file, framework="pt") as tensors:
            places.update(dict.fromkeys(tensors.keys(), file))
    if config.get("tie_word_embeddings"):
        places.pop(_HEAD, None)
    hasher = hashlib.blake2b(digest_size=32)
    for name in sorted(places):
        with safe_open(places[name], framework="pt") as tensors:
            _feed(hasher, name, tensors.get_tensor(name))
    return hasher.hexdigest()[:_SHOWN]


def _feed(hasher: Any, name: str, tensor: Tensor) -> None:
    plain = tensor.detach().cpu().contiguous()
    hasher.update(f"{name}\0{str(plain.dtype).removeprefix('torch.')}\0{tuple(plain.shape)}\0".encode())
    hasher.update(plain.flatten().view(torch.uint8).numpy().data)
