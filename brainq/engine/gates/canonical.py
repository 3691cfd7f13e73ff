"""Arguments as text: the canonical text of equal arguments with its hashes, and the text that the worker of a call
reads."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, cast

from brainq.contracts.turn import TurnRequest

HASH_CHARS = 32
_MAYBE_FLOAT = re.compile(r"[0-9][.e]")
# ASCII escapes, because a lone surrogate, which models do send, could not be encoded for hashing.
_encoded = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode

_compact = json.JSONEncoder(separators=(",", ":")).encode


def canonical_json(value: Any) -> str:
    """Return JSON with sorted keys and without spaces, in which 1.0 is written as 1.

    Raises ValueError for NaN, infinity and an object that contains itself, TypeError for other types than JSON's, and
    RecursionError for deep nesting.
    """
    text = _encoded(value)
    # A float always contains one of these characters; most arguments contain none.
    if _MAYBE_FLOAT.search(text):
        text = _encoded(_with_whole_floats_as_ints(value))
    return text


def fingerprint(tool: str, arguments: Mapping[str, Any]) -> str:
    """Return the hash that two calls share if they request the same: the same tool and canonical arguments."""
    return hashes_of(tool, canonical_json(arguments))[1]


def hashes_of(tool: str, canonical: str) -> tuple[str, str]:
    """Return (args_hash, fingerprint) of a text from `canonical_json`, each 32 hex characters of SHA-256."""
    text = canonical.encode("ascii", "backslashreplace")
    of_arguments, of_call = hashlib.sha256(text), hashlib.sha256(f"{tool}\0".encode("ascii", "backslashreplace") + text)
    return of_arguments.hexdigest()[:HASH_CHARS], of_call.hexdigest()[:HASH_CHARS]


def call_json(
    arguments: Mapping[str, Any],
    args_hash: str,
    lanes: tuple[str, ...],
    request: TurnRequest,
    *,
    edited: bool = False,
    hooked: bool = False,
) -> str:
    """Return the JSON text from which a worker runs the call.

    edited: whether a person changed the arguments.
    hooked: whether `on_post_tool_use` or a middleware is called when the call ends.
    """
    spec: dict[str, object] = {"arguments": arguments, "hash": args_hash, "lanes": lanes}
    if request.cwd is not None:
        spec["cwd"] = request.cwd
    if request.metadata is not None:
        spec["metadata"] = request.metadata
    if request.traceparent is not None:
        spec["traceparent"] = request.traceparent
    if edited:
        spec["edited"] = True
    if hooked:
        spec["hook"] = True  # must be last: scripts look at how the text ends
    return _compact(spec)


def _with_whole_floats_as_ints(value: Any) -> Any:
    match value:
        case float():
            return int(value) if value.is_integer() else value
        case dict():
            items = cast("dict[str, Any]", value).items()
            return {key: _with_whole_floats_as_ints(item) for key, item in items}
        case list() | tuple():
            return [_with_whole_floats_as_ints(item) for item in cast("list[Any]", value)]
        case _:
            return value
