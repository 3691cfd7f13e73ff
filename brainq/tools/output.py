"""The schema that a turn's answer has to fit, and reading the answer by it."""

from __future__ import annotations

import json
import re
from typing import Any, cast

from pydantic import BaseModel, JsonValue

from brainq.contracts.plain_json import check_json
from brainq.errors import InvalidInput
from brainq.gates.repair import refuse_constant
from brainq.gates.validation import explained
from brainq.tools.given_schema import lost_reference, wrong_words

OutputSchema = dict[str, Any] | type[BaseModel]
"""A JSON schema, or a pydantic model that stands for one."""

_FENCED = re.compile(r"```[a-zA-Z]*\s*\n(.*)\n\s*```", re.DOTALL)


def checked_schema(field: str, given: object) -> dict[str, Any]:
    """The JSON schema of `given`. Raises InvalidInput naming `field`."""
    if isinstance(given, type) and issubclass(given, BaseModel):
        given = given.model_json_schema()
    if not isinstance(given, dict):
        raise InvalidInput(
            field, f"must be a JSON schema as a dict, or a pydantic model class, got {type(given).__name__}"
        )
    schema = cast("dict[str, Any]", check_json(field, given))
    if problem := wrong_words(schema):
        raise InvalidInput(field, f"must be a JSON schema: {problem}")
    if reference := lost_reference(schema):
        raise InvalidInput(
            field,
            f"it refers to {reference!r}, which is not in it; put it under $defs and refer to '#/$defs/name'",
        )
    return schema


def read_output(schema: dict[str, Any], text: str) -> tuple[JsonValue, str]:
    """The value that `text` is as JSON, and "" or what keeps it from fitting. A code fence around all of it is no
    part of it."""
    from jsonschema import Draft202012Validator
    from referencing import Registry

    text = text.strip()
    if fenced := _FENCED.fullmatch(text):
        text = fenced[1]
    try:
        value: Any = json.loads(text, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        return None, f"it is not JSON ({error})" if text else "it is empty"
    registry: Registry[Any] = Registry()  # nothing is fetched
    try:
        errors = list(Draft202012Validator(schema, registry=registry).iter_errors(value))
    except RecursionError:
        return None, "it is nested too deeply"
    return (None, explained(errors)) if errors else (value, "")
