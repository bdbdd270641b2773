"""The part of the sandbox that runs elsewhere, packed so that it needs no file of ours where it runs."""

from __future__ import annotations

import json
import os
from pathlib import Path

PROGRAM = """
import json, os, sys
def prepare(number):
    source = json.loads(os.pread(number, 1 << 24, 0))
    Spec = type(__spec__ or sys.__spec__)
    class Modules:
        @staticmethod
        def find_spec(name, path=None, target=None):
            return Spec(name, Modules, is_package=source[name] == "") if name in source else None
        @staticmethod
        def create_module(spec):
            return None
        @staticmethod
        def exec_module(module):
            name = module.__name__
            exec(compile(source[name], f"<{name}>", "exec", dont_inherit=True), module.__dict__)
    sys.meta_path.insert(0, Modules)
prepare(int(sys.argv[1]))
"""
"""Makes the modules importable that descriptor ``argv[1]`` holds: the first thing a process of ours runs."""


def sources() -> int:
    """A descriptor with the modules of :mod:`rstar2cli.sandbox.inside`, and nothing else of the project."""
    inside = Path(__file__).parent / "inside"
    package = __name__.rpartition(".")[0] + ".inside"
    modules = {f"{package}.{path.stem}": path.read_text(encoding="utf-8") for path in inside.glob("*.py")}
    del modules[f"{package}.__init__"]
    while package:
        modules[package] = ""
        package = package.rpartition(".")[0]
    fd = os.memfd_create("rstar2-sandbox")
    with open(fd, "wb", closefd=False) as file:
        file.write(json.dumps(modules).encode())
    return fd
