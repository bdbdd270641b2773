"""Write docs/reference and schemas from the code. Run by ``just docs``."""

from __future__ import annotations

from pathlib import Path

from rstar2cli.cli.reference import pages
from rstar2cli.records.jsonschema import schema_files

ROOT = Path(__file__).parent.parent

for folder, files in (("docs/reference", pages()), ("schemas", schema_files())):
    target = ROOT / folder
    target.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (target / name).write_text(text, encoding="utf-8")
        print(target / name)
