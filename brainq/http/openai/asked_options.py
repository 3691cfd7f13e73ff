"""The parameters of both wires that say how the model is asked, as options of a turn."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, cast, get_args

from brainq.access import Verb
from brainq.contracts.options import MAX_STOPS, Effort, OptionsFields
from brainq.errors import InvalidInput
from brainq.http.gateway import Asker
from brainq.http.problems import Refused

_TAKEN = ("temperature", "top_p", "seed", "parallel_tool_calls", "reasoning_effort")


def asked_options(
    by: Asker, given: Mapping[str, Any], choice: str | None, *, effort: object = None
) -> OptionsFields:
    """The options that a request wishes. Of a caller that may not configure turns none counts but the call of a tool of
    its own: clients send such numbers by themselves.

    choice   from `forced_choice`
    effort   where the wire has it in a place of its own

    Raises InvalidInput, and Refused for `stop` of such a caller: an answer that goes on would be taken for one that
    stopped.
    """
    found: dict[str, Any] = {}
    if stop := _stops(given.get("stop")):
        if Verb.CONFIGURE not in by.caller.verbs:
            raise Refused(
                "forbidden", "stop: this needs the verb 'configure', which the caller does not have"
            )
        found["stop"] = stop
    if Verb.CONFIGURE in by.caller.verbs:
        found |= {name: given[name] for name in _TAKEN if given.get(name) is not None}
        if effort is not None:
            found["reasoning_effort"] = _effort(effort)
    if choice is not None:
        found["tool_choice"] = choice
    return cast("OptionsFields", found)


def forced_choice(choice: object, tools: Collection[str]) -> str | None:
    """The call that the request forces: `required`, or a tool of its own; None: no such. Raises InvalidInput."""
    if choice in (None, "auto", "none"):
        return None
    if not tools:
        raise InvalidInput("tool_choice", f"{choice!r} needs `tools` in the request")
    if choice == "required":
        return "required"
    name = _named(choice)
    if name is None:
        raise InvalidInput("tool_choice", "use auto, none, required, or a function of the request's `tools`")
    if name not in tools:
        raise InvalidInput("tool_choice", f"{name!r} is none of the request's `tools`")
    return name


def _named(choice: object) -> str | None:
    """The name in `{"type": "function", "function": {"name": ...}}`, or with the name beside the type."""
    if not isinstance(choice, dict):
        return None
    said = cast("dict[str, Any]", choice)
    inner = said.get("function", said)
    name: object = inner.get("name") if said.get("type") == "function" and isinstance(inner, dict) else None
    return name if isinstance(name, str) else None


def _stops(stop: object) -> list[str]:
    texts = [stop] if isinstance(stop, str) else stop or []
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in cast("list[object]", texts)):
        raise InvalidInput("stop", "it must be a text or a list of texts")
    found = [text for text in cast("list[str]", texts) if text]
    if len(found) > MAX_STOPS:
        raise InvalidInput("stop", f"it has {len(found)} texts; send {MAX_STOPS} at most")
    return found


def _effort(given: object) -> str:
    known = get_args(Effort)
    if given not in known:
        raise InvalidInput("reasoning.effort", f"{given!r} is none of {', '.join(known)}")
    return str(given)
