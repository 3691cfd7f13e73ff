"""Arguments as text: one for equal arguments, with short hashes of it, and one that the worker of a call reads."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, cast

from brainq.contracts.turn import TurnRequest

HASH_CHARS = 32
_MAYBE_FLOAT = re.compile(r"[0-9][.e]")
# ASCII escapes: a lone surrogate, which models do send, could not be encoded for hashing otherwise.
_encoded = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode

_compact = json.JSONEncoder(separators=(",", ":")).encode


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces, where 1.0 is written 1.

    Raises ValueError for NaN, infinity and what refers to itself, TypeError for what is no JSON, and
    RecursionError for what is nested too deep.
    """
    text = _encoded(value)
    # A float is always written with one of these; most arguments have none and are done here.
    if _MAYBE_FLOAT.search(text):
        text = _encoded(_with_whole_floats_as_ints(value))
    return text


def fingerprint(tool: str, arguments: Mapping[str, Any]) -> str:
    """What two calls share when they ask for the same thing: tool and canonical arguments."""
    return hashes_of(tool, canonical_json(arguments))[1]


def hashes_of(tool: str, canonical: str) -> tuple[str, str]:
    """(args_hash, fingerprint) from text that `canonical_json` made, each 32 hex characters of SHA-256."""
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
    """What the worker that runs the call needs beside its ids. `edited`: a person changed the arguments;
    `hooked`: `on_post_tool_use`, or a middleware, is called when it ends."""
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
        spec["hook"] = True  # the last of all: scripts look at how the text ends
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
