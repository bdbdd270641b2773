"""Docstrings of fields: the string literal after each annotated attribute of a class.

They are the single source for the JSON Schemas, the reference pages and
``rstar2 schema``; Python itself throws them away, so they are read from source.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import textwrap


@functools.cache
def field_docs(cls: type) -> dict[str, str]:
    """``{field: docstring}`` for the class and its bases, nearest definition first.

    Raises ``OSError`` if the source of the class can't be found.
    """
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("rstar2cli"):
            docs.update(_own_docs(base))
    return docs


def _own_docs(cls: type) -> dict[str, str]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    body = tree.body[0]
    assert isinstance(body, ast.ClassDef)
    docs = {}
    for statement, following in itertools.pairwise(body.body):
        if not (isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)):
            continue
        match following:
            case ast.Expr(value=ast.Constant(value=str(text))):
                docs[statement.target.id] = inspect.cleandoc(text)
    return docs
