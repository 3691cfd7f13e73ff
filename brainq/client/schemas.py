"""The JSON schemas of data between processes, for producers and readers in other languages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from brainq.contracts.event import TurnEvent
from brainq.contracts.file import MAX_NAME_CHARS
from brainq.contracts.ids import DERIVED_PREFIXES, ID_PATTERN, TURN_ID_PATTERN
from brainq.contracts.turn import TurnRequest, TurnResult
from brainq.contracts.typed_events import FIELDS

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_FILE: Mapping[str, Any] = {
    "description": "An image or a file: its bytes as base64 text, or as a data: URL.",
    "type": "object",
    "properties": {
        "data": {"type": "string", "minLength": 1},
        "media_type": {"type": "string", "default": ""},
        "name": {"type": "string", "maxLength": MAX_NAME_CHARS, "default": ""},
    },
    "required": ["data"],
    "additionalProperties": False,
}


def schema_of(name: str) -> dict[str, Any]:
    """Return a schema, of JSON Schema's draft 2020-12, that refers to no other document.

    name   submit: the arguments of the task `brainq.turn.submit`; event: one of a turn's; result: how a turn ended
    """
    return {"$schema": DIALECT, "title": f"brainq {name}", **_untitled(SCHEMAS[name]())}


def _submit() -> dict[str, Any]:
    """Return the schema of a submit by a producer without brainq, which `admission.read_foreign` reads."""
    schema = TurnRequest.model_json_schema()
    fields: dict[str, Any] = schema["properties"]
    del fields["parent"], schema["$defs"]["ParentCall"]
    ours = {"not": {"pattern": f"^({'|'.join(DERIVED_PREFIXES)})"}}
    fields["turn_id"] |= {"pattern": TURN_ID_PATTERN, **ours}
    fields["request_key"] |= {"pattern": f"^$|{ID_PATTERN}", **ours}
    fields["session_id"] |= {"pattern": ID_PATTERN}
    fields["user_message"] |= {"pattern": r"\S"}
    schema["$defs"]["Attachment"] = _FILE
    schema["required"] = ["session_id", "user_message"]
    # Either of these ids makes a repeated submit safe.
    schema["anyOf"] = [
        {"required": ["turn_id"]},
        {"required": ["request_key"], "properties": {"request_key": {"minLength": 1}}},
    ]
    return schema


def _event() -> dict[str, Any]:
    schema = TurnEvent.model_json_schema(mode="serialization")
    schema["allOf"] = [
        {
            "if": {"properties": {"kind": {"const": kind.value}}},
            "then": {"properties": {"data": {"propertyNames": {"enum": list(names)}}}},
        }
        for kind, names in FIELDS.items()
    ]
    return schema


def _result() -> dict[str, Any]:
    return TurnResult.model_json_schema(mode="serialization")


SCHEMAS: Mapping[str, Callable[[], dict[str, Any]]] = {"submit": _submit, "event": _event, "result": _result}


def _untitled(node: Any) -> Any:
    """Remove titles that only repeat the names of classes and fields."""
    if isinstance(node, dict):
        return {name: _untitled(value) for name, value in node.items() if name != "title" or not isinstance(value, str)}
    return [_untitled(value) for value in node] if isinstance(node, list) else node
