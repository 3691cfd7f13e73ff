"""The common parts of the vendors' wires: names, ids and arguments of calls; reasoning that is sent back; extra headers
and parameters."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from brainq.contracts.message import Message, Reasoning, ToolCall
from brainq.contracts.model_options import ModelOptions
from brainq.runtime.text.argument_text import read_argument_text
from brainq.runtime.text.surrogates import clean, clean_json

UNPARSED = "_unparsed"
MAX_NAME_CHARS = 64  # of a tool's name, as the strictest service accepts it; ours are no longer
_NOT_IN_IDS = re.compile(r"[^A-Za-z0-9_-]")
EARLIER_REASONING = "earlier reasoning"
"""The name of the earlier reasoning in a request. It is sent once more without it if the service refuses it, because it
was signed for another account, or because the conversation before it has changed."""


def parse_arguments(text: str) -> dict[str, Any] | str:
    """Return the object in `text`, or `text` itself if it is none. A gate then repairs or denies it.

    Empty, `null`, prefixed and repeated texts are read as in `read_argument_text`.
    """
    try:
        value = read_argument_text(text)
    except (ValueError, RecursionError):
        return clean(text)
    return cast("dict[str, Any]", clean_json(value)) if isinstance(value, dict) else clean(text)


def read_call(call_id: str, name: object, arguments: object) -> ToolCall:
    """Return a call of a reply. Some servers send the arguments as an object instead of JSON text."""
    text = arguments if isinstance(arguments, str) else "" if arguments is None else json.dumps(arguments)
    parsed = clean_json(arguments) if isinstance(arguments, dict) else parse_arguments(text)
    return ToolCall(id=call_id, name=clean(str(name or "")), arguments=parsed, provider_id=call_id)


def arguments_object(arguments: dict[str, Any] | str) -> dict[str, Any]:
    """Return the arguments for a wire that requires an object. Unparsable text goes under the key `_unparsed`."""
    if isinstance(arguments, str):
        parsed = parse_arguments(arguments)
        return {UNPARSED: parsed} if isinstance(parsed, str) else parsed
    return cast("dict[str, Any]", clean_json(arguments))


def arguments_text(arguments: dict[str, Any] | str) -> str:
    """Return the arguments for a wire that requires JSON text. It is always an object, because chat templates parse
    it."""
    return json.dumps(arguments_object(arguments), ensure_ascii=False)


def wire_name(name: str) -> str:
    """Return the name of a call in a form that services accept. Models make up names that no tool can have, and
    services refuse a whole request over one."""
    return _NOT_IN_IDS.sub("_", name)[:MAX_NAME_CHARS] or "unnamed"


class WireIds:
    """Makes call ids unique within a conversation.

    `c1-0` is unique in its turn, but a session's history has one for every turn, and services refuse a request that
    uses an id twice. A repeated id gets a suffix, and a result goes to the latest call of its id.
    """

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._latest: dict[str, str] = {}

    def for_call(self, call: ToolCall) -> str:
        wire = self._free(_NOT_IN_IDS.sub("_", call.id) or "call")
        self._used.add(wire)
        self._latest[call.id] = wire
        return wire

    def for_result(self, message: Message) -> str:
        return self._latest.get(message.call_id) or _NOT_IN_IDS.sub("_", message.call_id)

    def _free(self, plain: str) -> str:
        wire, number = plain, 1
        while wire in self._used:
            number += 1
            wire = f"{plain}_{number}"
        return wire


class NumberedIds(WireIds):
    """Ids of nine letters and digits, the only ones that Mistral's templates accept."""

    def for_result(self, message: Message) -> str:
        return self._latest.get(message.call_id, "call00000")

    def _free(self, plain: str) -> str:
        return f"call{len(self._used) + 1:05}"


def replayable_reasoning(message: Message, wire: str, model: str | None) -> tuple[Reasoning, ...]:
    """Return the reasoning that `model` produced for this message on `wire`. Returns () if `model` is None."""
    if model is None or not message.reasoning:
        return ()
    return tuple(thought for thought in message.reasoning if thought.wire == wire and thought.model == model)


def calls_wire(wire: str) -> str:
    """Return the name under which a wire keeps the unknown keys of its calls. Older workers ignore it."""
    return f"{wire}:call"


def with_extras(calls: list[dict[str, Any]], message: Message, wire: str, model: str | None) -> list[dict[str, Any]]:
    """Return a message's calls in the form of `wire`, with their unknown keys if `model` made them."""
    kept = {one.before: one.block for one in replayable_reasoning(message, calls_wire(wire), model)}
    return [_with_keys(call, kept[index]) if index in kept else call for index, call in enumerate(calls)]


def _with_keys(call: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    """Return the call with its unknown keys. A known key replaces an unknown one of the same name."""
    inner = {"function": extra["function"] | call["function"]} if "function" in extra else {}
    return extra | call | inner


def with_extra_parameters(body: dict[str, Any], options: ModelOptions) -> dict[str, Any]:
    """Return an SDK's arguments with the options' headers, and with their parameters merged into the request's JSON."""
    if options.extra_headers:
        body = {**body, "extra_headers": dict(options.extra_headers)}
    if options.extra_body:
        body = {**body, "extra_body": _deep_merge(body.get("extra_body") or {}, options.extra_body)}
    return body


def _deep_merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(below)
    for name, value in above.items():
        known = made.get(name)
        if isinstance(known, Mapping) and isinstance(value, Mapping):
            value = _deep_merge(known, value)
        made[name] = value
    return made
