"""The schema that a turn's answer must fit, and reading an answer by it."""

from __future__ import annotations

import json
import re
from typing import Any, cast

from pydantic import BaseModel, JsonValue

from brainq.contracts.base import check_json
from brainq.engine.gates.arguments import explain_errors
from brainq.engine.gates.repair import finite_number, refuse_constant
from brainq.engine.gates.schema_check import UnresolvedReference, schema_problem
from brainq.engine.gates.schema_validator import SchemaValidator
from brainq.errors import InvalidInput

MAX_SCHEMA_CHARS = 100_000
_CODE_FENCE = re.compile(r"```[a-zA-Z]*\s*\n(.*)\n\s*```", re.DOTALL)


def check_answer_schema(field: str, given: object) -> dict[str, Any]:
    """Return `given` as a JSON schema. Raises InvalidInput naming `field`."""
    if isinstance(given, type) and issubclass(given, BaseModel):
        given = given.model_json_schema()
    if not isinstance(given, dict):
        raise InvalidInput(
            field, f"must be a JSON schema as a dict, or a pydantic model class, got {type(given).__name__}"
        )
    schema = cast("dict[str, Any]", check_json(field, given))
    if (size := len(json.dumps(schema, ensure_ascii=False))) > MAX_SCHEMA_CHARS:
        raise InvalidInput(
            field, f"it is {size:,} characters, and each step sends it; make it {MAX_SCHEMA_CHARS:,} at most"
        )
    try:
        problem = schema_problem(schema)
    except UnresolvedReference as reference:
        raise InvalidInput(
            field,
            f"it refers to {str(reference)!r}, which is not in it; put it under $defs and refer to '#/$defs/name'",
        ) from None
    if problem:
        raise InvalidInput(field, f"must be a JSON schema: {problem}")
    return schema


def read_answer(schema: dict[str, Any], text: str) -> tuple[JsonValue, str]:
    """Return the JSON value of `text`, and "" or the reason why it does not fit. A code fence around the whole text is
    ignored."""
    text = text.strip()
    if fenced := _CODE_FENCE.fullmatch(text):
        text = fenced[1]
    try:
        value: Any = json.loads(text, parse_constant=refuse_constant, parse_float=finite_number)
    except (ValueError, RecursionError) as error:
        return None, f"it is not JSON ({error})" if text else "it is empty"
    errors = SchemaValidator(schema).errors(value)
    return (None, explain_errors(errors)) if errors else (value, "")
