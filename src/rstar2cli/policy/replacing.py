"""Which existing directory a new model may take the place of: a model's, with nothing else in it."""

from __future__ import annotations

import json
import re
from pathlib import Path

from rstar2cli.core.errors import OutputConflict
from rstar2cli.shards.atomic import telling

_CHECKPOINT = re.compile(
    r"(generation_)?config\.json|[\w-]+\.safetensors(\.index\.json)?|tokenizer(_config)?\.json|tokenizer\.model"
    r"|vocab\.json|merges\.txt|special_tokens_map\.json|added_tokens\.json|chat_template\.(jinja|json)"
)


def refuse_existing(out: str, overwrite: bool) -> None:
    """Raise ``OutputConflict`` if ``out`` exists and may not be replaced; only model directories ever are."""
    path = Path(out)
    with telling(path):
        if not path.exists() or (path.is_dir() and not any(path.iterdir())):
            return
        if not overwrite:
            raise OutputConflict(f"{out}: exists", hint="replace it with --overwrite, or choose another OUT")
        if not path.is_dir() or not _is_model(path):
            raise OutputConflict(f"{out}: not a model directory, so it is not replaced", hint="choose another OUT")
        foreign = sorted(item.name for item in path.iterdir() if not _CHECKPOINT.fullmatch(item.name))
    if foreign:
        raise OutputConflict(
            f"{out}: holds {', '.join(foreign[:3])}, which is no file of a model, so it is not replaced",
            hint="move it elsewhere, or choose another OUT",
        )


def _is_model(path: Path) -> bool:
    """Whether its configuration is a model's: those of shards and runs have neither key."""
    try:
        config = json.loads((path / "config.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return False
    return isinstance(config, dict) and ("model_type" in config or "architectures" in config)
