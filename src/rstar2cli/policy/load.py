"""Models and tokenizers from a directory, a run or the hub: safetensors only, no code from the hub."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging as hf_logging

from rstar2cli.core.errors import DataError, EnvironmentMissing, InputMissing
from rstar2cli.core.reading import reading
from rstar2cli.policy.devices import Dtype, pick_device, pick_dtype
from rstar2cli.policy.digest import checkpoint_digest
from rstar2cli.shards.owned import is_shard_directory

hf_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
hf_logging.set_verbosity_error()  # type: ignore[no-untyped-call]

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json")
_HUB_FILES = ["*.json", "*.safetensors", "tokenizer.model", "merges.txt", "*.jinja"]


@dataclass(frozen=True, kw_only=True)
class Policy:
    """A model ready to run."""

    model: Any
    """transformers causal language model, in eval mode."""
    tokenizer: Any
    """Its tokenizer."""
    digest: str
    """Digest of the checkpoint's weights as they are stored, whatever type they were loaded in."""
    path: Path
    """Directory it came from."""


def resolve_model(path: str) -> Path:
    """The directory of a model: of a run its ``model/``, of a hub id its copy in the local cache.

    Raises ``InputMissing`` if there is none, with what was looked for.
    """
    with reading(path):
        return _resolve_model(path)


def _resolve_model(path: str) -> Path:
    directory = Path(path)
    if directory.is_dir():
        if not (directory / "run.json").exists():
            return directory
        name: str = json.loads((directory / "run.json").read_text(encoding="utf-8")).get("model", "model")
        if (directory / name).is_dir():
            return directory / name
        raise InputMissing(f"{path}: this run has no model yet", hint="finish it: run its command again with --resume")
    if directory.exists():
        raise InputMissing(
            f"{path}: a model is a directory, this is a file", hint="turn a GGUF into one: rstar2 model import"
        )
    local = path.startswith((".", "/", "~")) or (directory.parts[:1] and Path(directory.parts[0]).is_dir())
    if local or not _HUB_ID.fullmatch(path):
        raise InputMissing(
            f"{path}: no such model directory", hint="make one: rstar2 model import or rstar2 model init"
        )
    return _from_hub(path)


def load_tokenizer(path: str | Path) -> Any:
    """The tokenizer of a model directory, run or hub id. Raises ``InputMissing`` or ``DataError``."""
    directory = resolve_model(str(path))
    require_config(directory)
    if not any((directory / name).exists() for name in _TOKENIZER_FILES):
        raise InputMissing(
            f"{directory}: no tokenizer (none of {', '.join(_TOKENIZER_FILES)})",
            hint="copy the tokenizer files of the base model into it",
        )
    try:
        return AutoTokenizer.from_pretrained(directory, trust_remote_code=False, local_files_only=True)
    except (OSError, ValueError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise DataError(f"{directory}: the tokenizer can't be read: {_first_line(error)}") from error


def require_config(directory: Path) -> None:
    """Raise ``InputMissing`` unless this is a model directory by its ``config.json``, saying what it is instead."""
    with reading(directory):
        if is_shard_directory(directory):
            raise InputMissing(
                f"{directory}: a shard directory, not a model", hint="give a model or a run directory with -m"
            )
        if not (directory / "config.json").exists():
            raise InputMissing(f"{directory}: not a model directory (no config.json)")


def load_policy(path: str | Path, *, device: str = "auto", dtype: Dtype = "auto") -> Policy:
    """Load model and tokenizer for use on a device.

    Raises ``InputMissing`` (no directory, weights or tokenizer), ``DataError`` (unreadable or
    incomplete weights), ``EnvironmentMissing`` (device or hub not there).
    """
    directory = resolve_model(str(path))
    chosen = pick_device(device)
    model = load_model(directory, device=device, dtype=dtype)
    return Policy(
        model=model.to(chosen),
        tokenizer=load_tokenizer(directory),
        digest=checkpoint_digest(directory),
        path=directory,
    )


def load_model(directory: Path, *, device: str = "auto", dtype: Dtype = "auto") -> Any:
    """The model alone, in eval mode. Errors as :func:`load_policy`."""
    require_config(directory)
    if not any(directory.glob("*.safetensors")):
        others = sorted(p.name for p in directory.iterdir() if p.suffix in (".bin", ".pt", ".pth", ".gguf"))
        found = f"; found {', '.join(others)}, which is not read" if others else ""
        raise InputMissing(
            f"{directory}: no weights (*.safetensors){found}", hint="convert it: rstar2 model import DIR -o OUT"
        )
    chosen = pick_device(device)
    try:
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            directory,
            dtype=pick_dtype(dtype, chosen),
            attn_implementation="sdpa",
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=True,
            output_loading_info=True,
        )
    except (OSError, ValueError, KeyError, RuntimeError, json.JSONDecodeError) as error:
        raise DataError(f"{directory}: the model can't be read: {_first_line(error)}") from error
    except Exception as error:  # safetensors raises its own class, of no common base
        if type(error).__name__ != "SafetensorError":
            raise
        raise DataError(f"{directory}: damaged weights: {_first_line(error)}") from error
    model, report = loaded
    _complete(directory, report)
    return model.eval().to(chosen)


def _complete(directory: Path, report: dict[str, Any]) -> None:
    faults = []
    for word in ("missing", "mismatched"):
        if keys := sorted(str(key) for key in report[f"{word}_keys"]):
            faults.append(f"{len(keys)} {word} ({keys[0]} …)")
    if faults:
        raise DataError(
            f"{directory}: incomplete weights: {', '.join(faults)}", hint="the checkpoint is not whole; save it again"
        )


def _from_hub(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, RepositoryNotFoundError

    try:
        return Path(snapshot_download(name, allow_patterns=_HUB_FILES))
    except RepositoryNotFoundError as error:
        raise InputMissing(f"{name}: neither a directory here nor a model on the hub") from error
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        raise EnvironmentMissing(
            f"{name}: no such directory, and the hub can't be reached", hint="give a local model directory"
        ) from error


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:300]
