"""The OpenAPI document of a service, from its table of routes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from rstar2cli.sandbox.wire import Refusal

_JSON = "application/json"


@dataclass(frozen=True, kw_only=True)
class Described:
    """One route as the document tells of it."""

    method: str
    path: str
    """With parameters in braces."""
    summary: str
    body: type | None = None
    """What the request is; null for none."""
    answer: Any = None
    """What a success is; null for no content or text."""
    status: int = 200
    media_type: str = _JSON
    """Of the answer; JSON lines hold one ``answer`` a line."""
    token: bool = True
    """Whether a token is asked for where the service has one."""


def document(routes: Sequence[Described], version: str) -> dict[str, Any]:
    """OpenAPI 3.1 of the routes."""
    types = [kind for route in routes for kind in (route.body, route.answer) if kind is not None]
    schemas, components = msgspec.json.schema_components([*types, Refusal], ref_template="#/components/schemas/{name}")
    of = dict(zip(map(id, [*types, Refusal]), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, of)
    return {
        "openapi": "3.1.0",
        "info": {"title": "rstar2 sandbox", "version": version},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _operation(route: Described, of: dict[int, dict[str, Any]]) -> dict[str, Any]:
    success: dict[str, Any] = {"description": "success"}
    if route.answer is not None:
        success["content"] = {route.media_type: {"schema": of[id(route.answer)]}}
    elif route.status != 204:
        success["content"] = {route.media_type: {"schema": {"type": "string"}}}
    refused = {"description": "refused", "content": {_JSON: {"schema": of[id(Refusal)]}}}
    operation: dict[str, Any] = {
        "summary": route.summary,
        "responses": {str(route.status): success, "4XX": refused, "503": refused},
    }
    if route.body is not None:
        operation["requestBody"] = {"required": True, "content": {_JSON: {"schema": of[id(route.body)]}}}
    names = [part[1:-1] for part in route.path.split("/") if part.startswith("{")]
    if names:
        operation["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names
        ]
    if route.token:
        operation["security"] = [{"token": []}, {}]
    return operation
