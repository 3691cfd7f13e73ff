"""From what a tool's function returned or raised to how its call ended, as JSON that may cross a process line."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError, to_jsonable_python

from brainq.contracts.call import ChildTurn, ServerTask, ToolFailure, ToolOutcome, ToolUnknown
from brainq.observe.tracebacks import where_raised
from brainq.text.shorten import beginning
from brainq.text.surrogates import clean, clean_json
from brainq.tools.results import OutcomeUnknown, Pending, ToolError

# From what a tool returned or raised to what may cross a process line.

MAX_RESULT_CHARS = 256_000

MAX_ERROR_CHARS = 2_000


def jsonable(value: Any) -> Any:
    """`value` as JSON: models, dataclasses, dates, sets and bytes in their usual form, the rest by `str()`.

    What is longer than MAX_RESULT_CHARS becomes the beginning of its text, and a line that says so.
    Raises ValueError for what has no JSON form, such as a list that holds itself.
    """
    if value is None or (isinstance(value, bool | int) and -(2**63) <= value < 2**63):
        return value
    if isinstance(value, str):
        text = clean(str(value))
        return text if len(text) <= MAX_RESULT_CHARS else _cut_result(text)
    text = _json_text(value)
    if len(text) > MAX_RESULT_CHARS:
        return _cut_result(text)
    return json.loads(text, parse_constant=str)  # NaN and infinities become words: JSON has no such numbers


def one_line(error: BaseException) -> str:
    """`TypeName: message` in one line of at most MAX_ERROR_CHARS characters."""
    try:
        message = " ".join(clean(str(error)).split())
    except Exception:  # a broken __str__ must not hide that the tool failed
        message = ""
    text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return beginning(text, MAX_ERROR_CHARS)


def _json_text(value: Any) -> str:
    try:
        try:
            plain = to_jsonable_python(value, fallback=str, bytes_mode="utf8")
        except (UnicodeError, PydanticSerializationError):  # bytes that are not text, or half an emoji in a key
            plain = to_jsonable_python(clean_json(value), fallback=str, bytes_mode="base64")
        return clean(json.dumps(plain, ensure_ascii=False))
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"it returned, but the result has no JSON form: {error}") from error


def _cut_result(text: str) -> str:
    marker = f"\n[cut: the first {{}} of {len(text)} characters]"
    shown = MAX_RESULT_CHARS - len(marker) - 8
    return text[:shown] + marker.format(shown)


# From what a function raised to how its call ended. Pure.


def outcome_of_raise(error: BaseException, latency_ms: int, *, block_tool: bool) -> ToolFailure | ToolUnknown:
    """A ToolError is the tool's own words, an OutcomeUnknown its doubt; anything else is rendered in one line."""
    if isinstance(error, OutcomeUnknown):
        return ToolUnknown(message=_error_words(error), why=OutcomeUnknown.__name__, latency_ms=latency_ms)
    own = isinstance(error, ToolError)
    return ToolFailure(
        error=_error_words(error) if own else one_line(error),
        error_type=type(error).__name__,
        latency_ms=latency_ms,
        retryable=getattr(error, "retryable", False) is True,
        block_tool=block_tool,
        own_words=own,
        where=where_raised(error),
    )


def _error_words(error: ToolError | OutcomeUnknown) -> str:
    return jsonable(str(error.text)).strip() or one_line(error)


# How a function came back: with an outcome, or with the wish that its call waits for somebody outside.

CallReturn = ToolOutcome | Pending | ChildTurn | ServerTask

_OUTCOMES: TypeAdapter[ToolOutcome] = TypeAdapter(ToolOutcome)


def checked_child_turn(child: ChildTurn) -> ChildTurn:
    """With options that may cross a process line. Raises ValueError for what makes no child turn."""
    if not (math.isfinite(child.timeout_s) and child.timeout_s > 0):
        raise ValueError(f"the timeout_s of a ChildTurn is {child.timeout_s!r}; use finite seconds above 0")
    options = jsonable(child.options)
    if not isinstance(options, dict):
        raise ValueError("the options of a ChildTurn must be a dict of at most 256,000 characters as JSON")
    return replace(child, options=options)


def dump_return(ended: CallReturn) -> dict[str, Any]:
    """As JSON, for the way out of a tool process."""
    if isinstance(ended, Pending):
        return {"pending": {"token": ended.token, "timeout_s": ended.timeout_s}}
    if isinstance(ended, ServerTask):
        return {"server_task": asdict(ended)}
    if isinstance(ended, ChildTurn):
        return {
            "child_turn": {
                "message": ended.message,
                "session_id": ended.session_id,
                "timeout_s": ended.timeout_s,
                "options": ended.options,
                "brain": ended.brain,
            }
        }
    return {"outcome": ended.model_dump(mode="json")}


def load_return(body: dict[str, Any]) -> CallReturn:
    """What `dump_ended` made."""
    if "pending" in body:
        return Pending(**body["pending"])
    if "server_task" in body:
        return ServerTask(**body["server_task"])
    if "child_turn" in body:
        return ChildTurn(**body["child_turn"])
    return _OUTCOMES.validate_python(body["outcome"])
