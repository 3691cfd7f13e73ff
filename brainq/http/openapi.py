"""The OpenAPI document: FastAPI's, with problems and bearer tokens in it."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from brainq.contracts.event import TurnEvent
from brainq.http.openai.errors import ErrorBody
from brainq.http.problems import Problem
from brainq.http.verbs import VERBS, is_public

SAYS = """LLM agent turns over HTTP. Every refusal is a problem (RFC 9457); a turn's events are a stream of
server-sent events that can be continued from any number, at any gateway."""


def described(app: FastAPI) -> dict[str, Any]:
    """Made once; then the same again."""
    if app.openapi_schema is None:
        made = get_openapi(title=app.title, version=app.version, description=SAYS, routes=app.routes)
        parts = made.setdefault("components", {})
        for model in (Problem, TurnEvent, ErrorBody):
            own = model.model_json_schema(ref_template="#/components/schemas/{model}")
            parts.setdefault("schemas", {}).update({**own.pop("$defs", {}), model.__name__: own})
        parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        for path, methods in made["paths"].items():
            for method, operation in methods.items():
                _secure(operation, f"{method.upper()} {path}", path)
        app.openapi_schema = made
    return app.openapi_schema


def _secure(operation: dict[str, Any], route: str, path: str) -> None:
    if is_public(path):
        operation["security"] = []
        return
    operation["security"] = [{"token": []}]
    operation["description"] = f"{operation.get('description', '')}\n\nVerb: `{VERBS[route].value}`.".strip()
