"""Model directories that transformers and vLLM load, written so that a half-written one is never seen."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rstar2cli.policy.digest import model_digest
from rstar2cli.shards.atomic import output_error, sync_directory

_LARGEST_FILE = "5GB"
_RUST_OS_ERROR = re.compile(r"\(os error (\d+)\)")


def save_model(model: Any, tokenizer: Any, path: str | Path, *, dtype: torch.dtype = torch.bfloat16) -> str:
    """Write a checkpoint (safetensors, tokenizer, configuration) over ``path`` in one rename; its digest.

    The weights are stored as ``dtype`` whatever type the model runs in. Raises what :func:`replacing_directory` does.
    """
    with replacing_directory(Path(path)) as directory:
        state = {name: tensor.detach().to("cpu", dtype) for name, tensor in model.named_parameters()}
        buffers = {name: tensor for name, tensor in model.state_dict().items() if name in dict(model.named_buffers())}
        model.save_pretrained(directory, state_dict={**state, **buffers}, max_shard_size=_LARGEST_FILE)
        tokenizer.save_pretrained(directory)
        _set_dtype(directory / "config.json", dtype)
    return model_digest(model, dtype)


def named_weights(model: Any, *, explicit_head: bool = False) -> Iterator[tuple[str, Tensor]]:
    """Every weight by its checkpoint name.

    A tied head is named only with ``explicit_head``: vLLM, told of new weights in a running
    model, keeps the old head of a tied model unless ``lm_head.weight`` is among them.
    """
    yield from ((name, tensor.detach()) for name, tensor in model.named_parameters())
    if explicit_head and model.config.tie_word_embeddings:
        yield "lm_head.weight", model.get_output_embeddings().weight.detach()


@contextlib.contextmanager
def replacing_directory(path: Path) -> Iterator[Path]:
    """A temporary directory beside ``path`` that takes its place on leaving without an exception.

    Its files are on disk before the rename; an old directory at ``path`` is removed after it.
    Raises ``EnvironmentMissing`` for a full disk, ``OutputConflict`` for other refusals.
    """
    temporary = path.with_name(f".{path.name}.writing-{os.getpid()}")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir(parents=True)
        yield temporary
        _open_to_others(temporary)
        _sync_tree(temporary)
        _swap(temporary, path)
    except Exception as error:
        if (refused := _refused(error)) is None:
            raise
        raise output_error(path, refused) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _refused(error: Exception) -> OSError | None:
    """The refusal of the operating system behind an error, or None.

    safetensors and tokenizers write in Rust and raise exceptions of their own (tokenizers a bare ``Exception``)
    that tell the number in their text alone.
    """
    if isinstance(error, OSError):
        return error
    if not (match := _RUST_OS_ERROR.search(str(error))):
        return None
    number = int(match[1])
    return OSError(number, os.strerror(number))


def _swap(new: Path, path: Path) -> None:
    old = path.with_name(f".{path.name}.old-{os.getpid()}")
    if path.exists():
        path.rename(old)
    new.rename(path)
    sync_directory(path.parent)
    shutil.rmtree(old, ignore_errors=True)


def _open_to_others(directory: Path) -> None:
    """Give every file what the umask allows, as the directory has it: safetensors writes for the owner alone."""
    mode = directory.stat().st_mode & 0o666
    for entry in directory.rglob("*"):
        if entry.is_file():
            entry.chmod(mode)


def _sync_tree(directory: Path) -> None:
    for entry in directory.rglob("*"):
        if entry.is_file():
            _sync(entry)
    _sync(directory)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _set_dtype(config_file: Path, dtype: torch.dtype) -> None:
    """transformers notes the type the model ran in; loaders want the type of the file."""
    config = json.loads(config_file.read_text(encoding="utf-8"))
    config["dtype"] = str(dtype).removeprefix("torch.")
    config.pop("_name_or_path", None)
    config.pop("_model_name_or_path", None)
    config_file.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
