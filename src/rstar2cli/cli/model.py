"""``rstar2 model``: make, import, export and describe models."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any, Literal

import typer

from rstar2cli.cli import help
from rstar2cli.cli.options import FormatOption, JsonResult, Overwrite

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Make, import, export and describe models: directories that transformers and vLLM load.",
)

ModelOut = Annotated[str, typer.Option("--out", "-o", metavar="DIR", help="Model directory to write.")]
Dtype = Annotated[Literal["bfloat16", "float32"], typer.Option("--dtype", help="Type that the weights are stored in.")]


def _command(name: str, *examples: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    def attach(function: Callable[..., None]) -> Callable[..., None]:
        documented = help.examples(*examples)(function)
        app.command(name, epilog=help.epilog(documented))(documented)
        return documented

    return attach


@_command(
    "init", "rstar2 model init -o models/tiny", "rstar2 model init -o models/tiny --hidden 128 --layers 4 --seed 1"
)
def init(
    out: ModelOut,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the weights.")] = 0,
    hidden: Annotated[int, typer.Option("--hidden", min=8, help="Width of the model.")] = 64,
    layers: Annotated[int, typer.Option("--layers", min=1, help="Number of layers.")] = 2,
    heads: Annotated[int, typer.Option("--heads", min=1, help="Query heads.")] = 4,
    kv_heads: Annotated[int, typer.Option("--kv-heads", min=1, help="Key heads; must divide --heads.")] = 2,
    head_dim: Annotated[int, typer.Option("--head-dim", min=2, help="Width of a head; even.")] = 32,
    max_length: Annotated[int, typer.Option("--max-length", min=16, help="Longest text in tokens.")] = 4096,
    untied: Annotated[bool, typer.Option("--untied", help="Give the output head weights of its own.")] = False,
    dtype: Dtype = "bfloat16",
    overwrite: Overwrite = False,
    json_result: JsonResult = False,
) -> None:
    """Make a random tiny Qwen3-style model with a byte-level ChatML tokenizer, for tests and plumbing."""
    from rstar2cli.core.errors import UsageError
    from rstar2cli.policy.replacing import refuse_existing
    from rstar2cli.policy.tiny import init_tiny

    if heads % kv_heads:
        near = [n for n in range(1, heads + 1) if heads % n == 0]
        raise UsageError(f"--kv-heads {kv_heads} does not divide --heads {heads}", hint=f"possible: {near}")
    if head_dim % 2:
        raise UsageError(f"--head-dim {head_dim} is odd", hint=f"possible: {head_dim - 1}, {head_dim + 1}")
    refuse_existing(out, overwrite)
    digest = init_tiny(
        out,
        seed=seed,
        hidden=hidden,
        layers=layers,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        max_length=max_length,
        tied=not untied,
        dtype=_torch_dtype(dtype),
    )
    _result(out, json_result, digest=digest)


@_command(
    "import",
    "rstar2 model import demo:smollm2 -o models/base",
    "rstar2 model import model.Q8_0.gguf -o models/base",
    "rstar2 model import Qwen/Qwen3-0.6B -o models/base",
)
def import_(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="GGUF file, model directory, hub id, or demo:smollm2.")
    ],
    out: ModelOut,
    dtype: Dtype = "bfloat16",
    overwrite: Overwrite = False,
    json_result: JsonResult = False,
) -> None:
    """Turn a model from elsewhere into a normal checkpoint, and check that it reads English."""
    from rstar2cli.policy.importing import import_model

    found = import_model(source, out, dtype=_torch_dtype(dtype), overwrite=overwrite)
    _result(
        out,
        json_result,
        source=found.source,
        digest=found.digest,
        parameters=found.parameters,
        probe_nll=round(found.probe_nll, 4),
    )


@_command("export", "rstar2 model export runs/rl -o models/final", "rstar2 model export runs/rl -o f32 --dtype float32")
def export(
    source: Annotated[str, typer.Argument(metavar="MODEL", help="Run directory, model directory or hub id.")],
    out: ModelOut,
    dtype: Dtype = "bfloat16",
    overwrite: Overwrite = False,
    json_result: JsonResult = False,
) -> None:
    """Copy the model of a run to a directory of its own, in the type wanted."""
    from rstar2cli.policy.checkpoint import save_model
    from rstar2cli.policy.load import load_model, load_tokenizer, resolve_model
    from rstar2cli.policy.replacing import refuse_existing

    directory = resolve_model(source)
    refuse_existing(out, overwrite)
    tokenizer = load_tokenizer(directory)
    digest = save_model(load_model(directory, device="cpu", dtype="float32"), tokenizer, out, dtype=_torch_dtype(dtype))
    _result(out, json_result, source=str(directory), digest=digest)


@_command("info", "rstar2 model info models/base", "rstar2 model info runs/sft -f json")
def info(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Model directory, run directory or hub id.")],
    format: FormatOption = "auto",
) -> None:
    """Print parameters, type, digest, limits, vocabulary and special tokens of a model."""
    from rstar2cli.cli.output import chosen, emit
    from rstar2cli.policy.describe import describe_model

    found = describe_model(model)
    if chosen(format) == "table":
        emit([{"what": name, "value": str(value)} for name, value in found.items()], format)
    else:
        emit([found], format)


def _torch_dtype(name: str) -> Any:
    import torch

    return getattr(torch, name)


def _result(out: str, as_json: bool, **found: Any) -> None:
    print(json.dumps({"out": out, **found}) if as_json else out)
