"""The parameters of both OpenAI wires: model, tools, answer format, limits, options, and rejected parameters."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast, get_args

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from brainq.app.access import Caller, Verb
from brainq.client.async_handle import AsyncTurnHandle
from brainq.client.options import SubmitOptions
from brainq.contracts.model_options import MAX_STOPS, Effort, OptionsFields
from brainq.contracts.turn import LimitsFields
from brainq.engine.brain.brain import Brain
from brainq.errors import InvalidInput
from brainq.gateway.edge.problems import RequestRejected
from brainq.gateway.edge.request import Gateway
from brainq.gateway.rest.event_stream import result_if_ready

SESSION_KEY = "session_id"
"""The key of `metadata` that names a session. SESSION_HEADER does the same."""
SESSION_HEADER = "X-Session-ID"
Unsupported = Mapping[str, Sequence[Any]]
"""Parameters that are rejected unless they have one of these values, which have no effect."""
COMMON_UNSUPPORTED: Unsupported = {"top_logprobs": (0,), "moderation": ()}
"""The unsupported parameters of both wires."""
_MODEL_OPTIONS = ("temperature", "top_p", "seed", "parallel_tool_calls", "reasoning_effort")


class OpenAiBody(BaseModel):
    """The body of a request. Unknown parameters are rejected."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


def require_brain(gateway: Gateway, model: str | None) -> Brain:
    """Return the brain that `model` names, or the default one for None. Raises RequestRejected if there is none."""
    found = gateway.brains.of(model)
    if found is None:
        names = ", ".join(gateway.brains.names)
        raise RequestRejected(
            "model-not-found",
            f"{str(model)[:100]!r} is not the name of a brain; GET /v1/models lists the brains: {names}",
        )
    return found


class AnswerRequestBody(OpenAiBody):
    """The parameters that both wires have. Unknown parameters are kept for `check_request`."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"additionalProperties": False})

    stream: bool | None = None
    tools: list[dict[str, JsonValue]] | None = None
    tool_choice: JsonValue = None
    metadata: dict[str, str] | None = None
    # Options of the model for callers that may configure turns.
    temperature: float | None = Field(default=None, ge=0, le=2, allow_inf_nan=False)
    top_p: float | None = Field(default=None, gt=0, le=1, allow_inf_nan=False)
    parallel_tool_calls: bool | None = None
    # Accepted without effect.
    store: bool | None = None
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_options: JsonValue = None
    prompt_cache_retention: str | None = None
    service_tier: str | None = None
    # Rejected unless the value has no effect; see COMMON_UNSUPPORTED.
    top_logprobs: JsonValue = None
    moderation: JsonValue = None


async def brain_name(gateway: Gateway, handle: AsyncTurnHandle) -> str:
    snapshot = await handle.snapshot()
    named = snapshot.brain if snapshot is not None else getattr(await result_if_ready(handle), "brain", None)
    return named or gateway.brains.default.name


def check_request(gateway: Gateway, body: AnswerRequestBody, model: str | None, unsupported: Unsupported) -> Brain:
    """Return the brain that the request is for.

    Raises InvalidInput for an unknown parameter, unless the gateway is lenient, and for an unsupported parameter that
    would change the answer.
    """
    if not gateway.settings.http_openai_lenient:
        for name in body.model_extra or ():
            raise InvalidInput(name, "the parameter is unknown; omit it")
    brain = require_brain(gateway, model)
    for name, values in unsupported.items():
        value = getattr(body, name)
        if value is not None and value not in values:
            choices = " or ".join(repr(one) for one in values)
            rest = f"; leave it out, or send {choices}" if values else "; leave it out"
            raise InvalidInput(name, f"it is not supported here{rest}")
    return brain


def read_client_tools(given: Sequence[Mapping[str, Any]] | None, choice: object) -> list[dict[str, Any]]:
    """Read the client's function tools in the form of either wire. `choice` "none" drops them all.

    Raises InvalidInput that names the tool.
    """
    if choice == "none":
        return []
    tools: list[dict[str, Any]] = []
    for at, tool in enumerate(given or ()):
        where = f"tools[{at}]"
        if tool.get("type") != "function":
            raise InvalidInput(where, "only tools of the type 'function' are supported")
        inner = tool.get("function", tool)
        found = cast("Mapping[str, Any]", inner) if isinstance(inner, dict) else {}
        name = found.get("name")
        if not isinstance(name, str):
            raise InvalidInput(where, "its name is missing")
        made: dict[str, Any] = {"name": name, "description": found.get("description") or ""}
        if found.get("parameters") is not None:
            made["parameters"] = found["parameters"]
        tools.append(made)
    return tools


def read_limits(brain: Brain, caller: Caller, output_tokens: int | None, tool_calls: int | None = None) -> LimitsFields:
    """Return the limits that a request sets. A caller that may not configure turns can only narrow the brain's limits;
    larger numbers are ignored, because clients send them by default."""
    limits: LimitsFields = {}
    base, may_widen = brain.limits, Verb.CONFIGURE in caller.verbs
    if output_tokens is not None and (may_widen or output_tokens <= (base.max_output_tokens or output_tokens)):
        limits["max_output_tokens"] = output_tokens
    if tool_calls is not None and (may_widen or tool_calls <= base.tool_calls):
        limits["max_tool_calls"] = tool_calls
    return limits


def read_output_schema(field: str, given: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Read the schema of the answer from `response_format` or `text.format`."""
    if given is None or given.get("type") == "text":
        return None
    if given.get("type") == "json_object":
        return {"type": "object"}
    if given.get("type") == "json_schema":
        inner = given.get("json_schema", given)
        schema = cast("Mapping[str, Any]", inner).get("schema") if isinstance(inner, dict) else None
        if isinstance(schema, dict):
            return cast("dict[str, Any]", schema)
        raise InvalidInput(field, "its schema is missing")
    raise InvalidInput(field, "its type is not one of text, json_object, json_schema")


def submit_options(
    brain: Brain,
    caller: Caller,
    body: AnswerRequestBody,
    schema: dict[str, Any] | None,
    limits: LimitsFields,
    *,
    effort: object = None,
) -> SubmitOptions:
    """Return the options of the submit. For `effort` see `model_options`."""
    tools = read_client_tools(body.tools, body.tool_choice)
    forced = forced_choice(body.tool_choice, {tool["name"] for tool in tools})
    turn_options = model_options(caller, body.model_dump(exclude_unset=True), forced, effort=effort)
    options: SubmitOptions = {"brain": brain.name}
    if tools:
        options["client_tools"] = tools
    if schema is not None:
        options["output_schema"] = schema
    if limits:
        options["limits"] = limits
    if turn_options:
        options["options"] = turn_options
    if rest := {name: value for name, value in (body.metadata or {}).items() if name != SESSION_KEY}:
        options["metadata"] = rest
    return options


def model_options(
    caller: Caller, given: Mapping[str, Any], choice: str | None, *, effort: object = None
) -> OptionsFields:
    """Return the model options that a request sets. A caller that may not configure turns can only force calls of its
    own tools; its other options are ignored, because clients send them by default.

    choice   the return value of `forced_choice`
    effort   the reasoning effort, if the wire has a separate place for it

    Raises InvalidInput, and RequestRejected for `stop` from such a caller, because ignoring it would change the answer.
    """
    found: dict[str, Any] = {}
    if stop := _read_stops(given.get("stop")):
        if Verb.CONFIGURE not in caller.verbs:
            raise RequestRejected("forbidden", "stop: this needs the verb 'configure', which the caller does not have")
        found["stop"] = stop
    if Verb.CONFIGURE in caller.verbs:
        found |= {name: given[name] for name in _MODEL_OPTIONS if given.get(name) is not None}
        if effort is not None:
            found["reasoning_effort"] = _read_effort(effort)
    if choice is not None:
        found["tool_choice"] = choice
    return cast("OptionsFields", found)


def forced_choice(choice: object, tools: Collection[str]) -> str | None:
    """Return "required", the name of the client's tool that the request forces, or None. Raises InvalidInput."""
    if choice in (None, "auto", "none"):
        return None
    if not tools:
        raise InvalidInput("tool_choice", f"{choice!r} needs `tools` in the request")
    if choice == "required":
        return "required"
    name = _function_name(choice)
    if name is None:
        raise InvalidInput("tool_choice", "use auto, none, required, or a function of the request's `tools`")
    if name not in tools:
        raise InvalidInput("tool_choice", f"{name!r} is not one of the request's `tools`")
    return name


def _function_name(choice: object) -> str | None:
    """Return the name in `{"type": "function", "function": {"name": ...}}` or `{"type": "function", "name": ...}`."""
    if not isinstance(choice, dict):
        return None
    fields = cast("dict[str, Any]", choice)
    inner = fields.get("function", fields)
    name: object = inner.get("name") if fields.get("type") == "function" and isinstance(inner, dict) else None
    return name if isinstance(name, str) else None


def _read_stops(stop: object) -> list[str]:
    texts = [stop] if isinstance(stop, str) else stop or []
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in cast("list[object]", texts)):
        raise InvalidInput("stop", "it must be a text or a list of texts")
    found = [text for text in cast("list[str]", texts) if text]
    if len(found) > MAX_STOPS:
        raise InvalidInput("stop", f"it has {len(found)} texts; send at most {MAX_STOPS}")
    return found


def _read_effort(given: object) -> str:
    known = get_args(Effort)
    if given not in known:
        raise InvalidInput("reasoning.effort", f"{given!r} is not one of {', '.join(known)}")
    return str(given)
