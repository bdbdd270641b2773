"""What a model directory holds, from its files: no weights are put to use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from rstar2cli.core.errors import DataError, InputMissing
from rstar2cli.core.reading import reading
from rstar2cli.policy.digest import checkpoint_digest
from rstar2cli.policy.load import load_tokenizer, require_config, resolve_model

_SPECIAL = ("<|im_start|>", "<|im_end|>")


def describe_model(path: str) -> dict[str, Any]:
    """Figures of a model by name: architecture, parameters, types, digest, tied, limits, vocabulary, special tokens.

    Raises ``InputMissing`` or ``DataError``.
    """
    directory = resolve_model(path)
    config, shapes = _contents(directory)
    digest = checkpoint_digest(directory)
    tokenizer = load_tokenizer(directory)
    tied = bool(config.get("tie_word_embeddings"))
    counted = {name: size for name, (size, _) in shapes.items() if not (tied and name == "lm_head.weight")}
    return {
        "path": str(directory),
        "architecture": ", ".join(config.get("architectures") or [config.get("model_type", "unknown")]),
        "parameters": sum(counted.values()),
        "dtype": ", ".join(sorted({kind for _, kind in shapes.values()})),
        "bytes": sum(file.stat().st_size for file in directory.glob("*.safetensors")),
        "digest": digest,
        "tied": tied,
        "layers": config.get("num_hidden_layers"),
        "hidden": config.get("hidden_size"),
        "max_length": config.get("max_position_embeddings"),
        "vocabulary": config.get("vocab_size"),
        "tokenizer_size": len(tokenizer),
        "eos": _token(tokenizer, tokenizer.eos_token_id),
        "pad": _token(tokenizer, tokenizer.pad_token_id),
        "chatml": all(len(tokenizer.encode(mark, add_special_tokens=False)) == 1 for mark in _SPECIAL),
        "chat_template": bool(tokenizer.chat_template),
    }


def check_model(path: str) -> None:
    """Raise ``InputMissing`` or ``DataError`` for a model that is not there, not whole or without a tokenizer.

    Reads the heads of its files only: to be asked before anything is replaced by what is made with it.
    """
    directory = resolve_model(path)
    _contents(directory)
    load_tokenizer(directory)


def _contents(directory: Path) -> tuple[dict[str, Any], dict[str, tuple[int, str]]]:
    """Configuration, and size and type of every tensor."""
    require_config(directory)
    with reading(directory):
        try:
            config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
        except ValueError as error:
            raise DataError(f"{directory / 'config.json'}: can't be read: {error}") from error
        shapes = _shapes(directory)
    if not shapes:
        raise InputMissing(f"{directory}: no weights (*.safetensors)")
    return config, shapes


def _shapes(directory: Path) -> dict[str, tuple[int, str]]:
    """Number of values and type of each tensor."""
    shapes = {}
    for file in sorted(directory.glob("*.safetensors")):
        file.open("rb").close()  # safetensors tells what may not be read as absent
        try:
            with safe_open(file, framework="pt") as tensors:
                for name in tensors.keys():  # noqa: SIM118 - not a dict
                    part = tensors.get_slice(name)
                    size = 1
                    for length in part.get_shape():
                        size *= length
                    shapes[name] = (size, str(part.get_dtype()))
        except SafetensorError as error:
            raise DataError(
                f"{file}: damaged or cut-off weights: {error}", hint="copy the model again, or make it again"
            ) from error
    return shapes


def _token(tokenizer: Any, number: int | None) -> str | None:
    return None if number is None else f"{tokenizer.convert_ids_to_tokens(number)} ({number})"
