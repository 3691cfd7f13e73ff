"""A planned call with the arguments that a person chose instead of the model's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from brainq.contracts.base import check_json
from brainq.contracts.call import ToolDenied
from brainq.contracts.people import EditedCall
from brainq.contracts.tool import ToolSpec
from brainq.contracts.turn import TurnRequest
from brainq.engine.brain.brain import Brain
from brainq.engine.gates.arguments import ToolArgValidator, ValidArguments
from brainq.engine.gates.canonical import call_json, canonical_json
from brainq.engine.tools.lanes import lanes_of
from brainq.errors import InvalidInput

MAX_SHOWN_CHARS = 200
_FOR_MODELS = " Correct them and call again."
_VALIDATOR = ToolArgValidator()


def edited_call(
    brain: Brain, tool_name: str, arguments: Mapping[str, Any], session_id: str, request: TurnRequest
) -> EditedCall:
    """Return the call as it will run with `arguments`. Everything that depends on them is derived again.

    A person's arguments must fit the tool's schema as they are. A mistake that would be repaired in a model's arguments
    is refused, and the error shows the correct form.

    Raises InvalidInput: `tool` if it is unknown, `arguments` or `arguments.NAME` if they do not fit, or the name of a
    parameter that a resource needs.
    """
    tool = brain.tools.get(tool_name)
    if tool is None:
        known = ", ".join(sorted(brain.tools)) or "(none)"
        raise InvalidInput("tool", f"brain {brain.name!r} has no tool {tool_name!r}; its tools are {known}")
    given = _plain_copy(arguments)
    valid = _validate(tool.spec, given)
    lanes = lanes_of(tool.spec, given, session_id)
    return EditedCall(
        call_json(given, valid.args_hash, lanes, request, edited=True, hooked=bool(brain.hooks.after_call)),
        valid.args_hash,
        valid.fingerprint if tool.spec.is_guarded else "",
        lanes,
    )


def _plain_copy(arguments: object) -> dict[str, Any]:
    """Return a copy with JSON's types, as the worker will read it."""
    if not isinstance(arguments, Mapping):
        raise InvalidInput("arguments", f"must be an object such as {{'path': 'a.md'}}, got {type(arguments).__name__}")
    given = dict(cast("Mapping[str, Any]", arguments))
    check_json("arguments", given)
    return json.loads(json.dumps(given))


def _validate(spec: ToolSpec, given: dict[str, Any]) -> ValidArguments:
    valid = _VALIDATOR.judge(spec, given)
    if isinstance(valid, ToolDenied):
        problem = valid.message.removesuffix(_FOR_MODELS)
        raise InvalidInput("arguments", f"{problem} Correct them and approve again.")
    if valid.repairs:
        raise _mended_problem(spec, given, valid.arguments)
    return valid


def _mended_problem(spec: ToolSpec, given: dict[str, Any], mended: dict[str, Any]) -> InvalidInput:
    for name, value in given.items():
        if name not in mended:
            return InvalidInput(f"arguments.{name}", f"tool {spec.name!r} has no such parameter; leave it out")
        if canonical_json(value) != canonical_json(mended[name]):
            return InvalidInput(
                f"arguments.{name}",
                f"{_as_json(value)} does not fit the schema of tool {spec.name!r}; write {_as_json(mended[name])}",
            )
    return InvalidInput("arguments", f"they do not fit the schema of tool {spec.name!r}; send {_as_json(mended)}")


def _as_json(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_SHOWN_CHARS else text[: MAX_SHOWN_CHARS - 3] + "..."
