"""The opening wave: before a turn's first step, one wave of calls reads the memory and the context pack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from brainq.contracts.claim import PlannedCall
from brainq.contracts.ids import call_id
from brainq.contracts.status import Effect
from brainq.contracts.turn import TurnRequest
from brainq.contracts.view import TurnView
from brainq.engine.brain.brain import Brain
from brainq.engine.gates.canonical import call_json
from brainq.engine.tools.context_pack import MEMORY_TOOL
from brainq.engine.tools.tool import Tool
from brainq.engine.turn.call_plan import approval_for
from brainq.runtime.observe.logs import logger

log = logger("brainq.turn")
SHARE_OF_TIME = 0.3  # of the turn's time, so that slow memory leaves a short turn time to answer


@dataclass(frozen=True, slots=True)
class OpeningWave:
    """The calls of step 0, which no budget is charged for, and how long the turn waits for them."""

    calls: tuple[PlannedCall, ...]
    limit_s: float


def opening_wave(brain: Brain, view: TurnView) -> OpeningWave | None:
    """Return the plan of the opening wave. Returns None if the brain has no memory and no pack tool, or if the wave has
    already run."""
    if view.opened or view.step > 0:
        return None
    limit_s = min(brain.context.opening_s, max(0.0, view.remaining_ms / 1000) * SHARE_OF_TIME)
    request = view.request
    calls: list[PlannedCall] = []
    if brain.memory is not None and brain.memory.retriever is not None:
        calls.append(_opening_call(0, MEMORY_TOOL, {"query": request.user_message}, limit_s, request))
    pack = _pack_tool(brain)
    if pack is not None:
        parameter = query_parameter(pack.spec.parameters)
        if approval_for(brain, pack, {parameter: request.user_message} if parameter else {}) is not None:
            log.warning("the pack tool needs an approval and is not called", tool=pack.spec.name)
        elif parameter:
            cap_s = min(pack.spec.timeout_s, limit_s)
            calls.append(_opening_call(len(calls), pack.spec.name, {parameter: request.user_message}, cap_s, request))
        else:
            log.warning("pack tool not called: it must take one text and require nothing else", tool=pack.spec.name)
    return OpeningWave(tuple(calls), limit_s) if calls else None


def query_parameter(parameters: Mapping[str, Any]) -> str:
    """Return the name of the text parameter that receives the user's message.

    Returns "" if the tool requires anything else.
    """
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


def _opening_call(place: int, tool: str, arguments: dict[str, str], cap_s: float, request: TurnRequest) -> PlannedCall:
    return PlannedCall(
        id=call_id(0, place),
        tool=tool,
        effect=Effect.READ_ONLY,
        wave=1,
        arguments_json=call_json(arguments, "", (), request),
        args_hash="",
        fingerprint="",
        cap_ms=int(cap_s * 1000),
    )
