"""What a turn begins with, before its first step: memory and the context pack, as one wave of reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from brainq.brain import Brain
from brainq.contracts.claim import PlannedCall
from brainq.contracts.effect import Effect
from brainq.contracts.ids import call_id
from brainq.contracts.turn import TurnRequest
from brainq.observe.logs import logger
from brainq.tools.opening import MEMORY_TOOL
from brainq.tools.tool import Tool
from brainq.turn.planning.approval import ask_for

log = logger("brainq.turn")


SHARE_OF_TIME = 0.3  # of what the turn has: memory that is late must leave a short turn time to answer


def opening_limit_s(brain: Brain, remaining_ms: int) -> float:
    """How long this turn waits for its opening wave."""
    return min(brain.context.opening_s, max(0.0, remaining_ms / 1000) * SHARE_OF_TIME)


def opening_calls(brain: Brain, request: TurnRequest, limit_s: float) -> tuple[PlannedCall, ...]:
    """The calls of step 0, none of them paid for; empty where the brain has neither memory nor a pack tool."""
    calls: list[PlannedCall] = []
    if brain.memory is not None and brain.memory.retriever is not None:
        calls.append(_call(0, MEMORY_TOOL, {"query": request.user_message}, limit_s, request))
    pack = _pack_tool(brain)
    if pack is not None:
        parameter = query_parameter(pack.spec.parameters)
        if ask_for(brain, pack, {parameter: request.user_message} if parameter else {}) is not None:
            log.warning("the pack tool needs an approval and is not called", tool=pack.spec.name)
        elif parameter:
            cap_s = min(pack.spec.timeout_s, limit_s)
            calls.append(_call(len(calls), pack.spec.name, {parameter: request.user_message}, cap_s, request))
        else:
            log.warning("the pack tool needs more than one text and is not called", tool=pack.spec.name)
    return tuple(calls)


def query_parameter(parameters: Mapping[str, Any]) -> str:
    """The one text parameter that the user's message is given to; "" when the tool needs something else, too."""
    properties: Mapping[str, Any] = parameters.get("properties", {})
    required = [str(name) for name in parameters.get("required", ())]
    if len(required) > 1:
        return ""
    names = required or [name for name in ("query", "topic", "text") if name in properties]
    if not names or properties.get(names[0], {}).get("type") != "string":
        return ""
    return names[0]


def _pack_tool(brain: Brain) -> Tool | None:
    name = brain.context.pack_tool
    tool = brain.tools.get(name) if name else None
    return tool if tool is not None and tool.spec.effect is Effect.READ_ONLY else None


def _call(
    place: int, tool: str, arguments: dict[str, str], cap_s: float, request: TurnRequest
) -> PlannedCall:
    spec: dict[str, object] = {"arguments": arguments, "hash": "", "lanes": ()}
    if request.cwd is not None:
        spec["cwd"] = request.cwd
    if request.metadata is not None:
        spec["metadata"] = request.metadata
    if request.traceparent is not None:
        spec["traceparent"] = request.traceparent
    return PlannedCall(
        id=call_id(0, place),
        tool=tool,
        effect=Effect.READ_ONLY,
        wave=1,
        arguments_json=json.dumps(spec, separators=(",", ":")),
        args_hash="",
        fingerprint="",
        cap_ms=int(cap_s * 1000),
    )
