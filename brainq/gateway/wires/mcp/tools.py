"""The tools of each caller, and the tool of a brain, which begins a turn and returns its answer."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Any

from mcp_types import CallToolRequestParams, CallToolResult, InputRequiredResult, Tool, ToolAnnotations
from pydantic import Field

from brainq.access import Caller, Verb
from brainq.brain.brain import Brain
from brainq.client.async_handle import AsyncTurnHandle
from brainq.contracts.status import Effect
from brainq.contracts.turn import MAX_MESSAGE_CHARS
from brainq.gateway.edge.limits import StreamSlot
from brainq.gateway.edge.request import CONFIGURE_OPTIONS, ID
from brainq.gateway.rest.bodies import Body, SubmitBody, require_may_submit, submit_turn
from brainq.gateway.wires.mcp.following import (
    ProgressReporter,
    apply_decisions,
    can_elicit,
    elicit_now,
    elicitation_result,
    follow_turn,
    read_round,
)
from brainq.gateway.wires.mcp.requests import CallsInFlight, McpRequest, default_session, read_input
from brainq.gateway.wires.mcp.turn_report import TurnReport, report_schema, report_turn, tool_result
from brainq.gateway.wires.mcp.turn_tools import TURN_TOOLS, TurnTool

WAIT_S = 50.0
"""Less than the minute after which clients give up a call, and cancel its turn."""


class BrainToolInput(Body):
    """A message for the agent."""

    message: str = Field(min_length=1, max_length=MAX_MESSAGE_CHARS, description="What the agent is to do or answer.")
    session: str | None = Field(
        default=None,
        pattern=ID,
        description="The session of an earlier answer, to go on with that conversation. Left out: a new one.",
    )
    wait_s: float | None = Field(
        default=None,
        ge=0,
        allow_inf_nan=False,
        description=f"How many seconds to wait for the answer; {WAIT_S:g} if left out. An agent that is not done by "
        "then goes on, and `result` has its answer later.",
    )


async def run_brain_tool(
    request: McpRequest, brain: Brain, params: CallToolRequestParams, calls: CallsInFlight
) -> CallToolResult | InputRequiredResult:
    """Begin a turn of this brain, or continue the one whose approvals the client's user has decided."""
    request.require_verb(Verb.READ)
    args = read_input(BrainToolInput, "arguments", params.arguments or {})
    wait_s = min(WAIT_S if args.wait_s is None else args.wait_s, request.gateway.settings.http_wait_s)
    with request.stream_slot() as slot:
        if params.request_state is not None:
            shown = read_round(params.request_state)
            with calls.cancelled_with(request, slot, shown.turn_id):
                handle = await request.own_turn(shown.turn_id)
                if not await apply_decisions(request, shown, params.input_responses or {}):
                    return tool_result(request, await report_turn(request, handle, shown.seq))
                return await _follow_turn(request, slot, handle, shown.seq, wait_s)
        key = calls.request_key(request)
        body = SubmitBody(
            session_id=args.session or default_session(request.caller, key), user_message=args.message, brain=brain.name
        )
        require_may_submit(request.needing(Verb.SUBMIT), body.session_id, body)
        with calls.cancelled_with(request, slot, key):
            return await _follow_turn(request, slot, await submit_turn(request.gateway, body, key), 0, wait_s)


async def _follow_turn(
    request: McpRequest, slot: StreamSlot, handle: AsyncTurnHandle, after: int, wait_s: float
) -> CallToolResult | InputRequiredResult:
    progress = ProgressReporter(lambda done, words: request.context.session.report_progress(done, message=words))
    while True:
        found = await follow_turn(request, handle, slot, after, wait_s, progress)
        if not found.approvals or not can_elicit(request):
            return tool_result(request, await report_turn(request, handle, found.last_event))
        if request.is_modern:
            return elicitation_result(handle, found.last_event, found.approvals)
        if not await elicit_now(request, handle, found.last_event, found.approvals, slot):
            return tool_result(request, await report_turn(request, handle, found.last_event))
        after = found.last_event


MAX_TOOL_NAME_CHARS = 64
BRAIN_TOOL_VERBS = frozenset({Verb.SUBMIT, Verb.READ})


def brains_by_tool(brains: Iterable[Brain]) -> dict[str, Brain]:
    """The brains by their tools' names: letters, digits, _ and -, 64 at most, and none twice."""
    found: dict[str, Brain] = {}
    for brain in brains:
        name = re.sub(r"[^A-Za-z0-9_-]", "_", brain.name)
        if name in TURN_TOOLS:
            name = f"ask_{name}"
        if len(name) > MAX_TOOL_NAME_CHARS or name in found:
            digest = hashlib.sha256(brain.name.encode()).hexdigest()[:8]
            name = f"{name[: MAX_TOOL_NAME_CHARS - len(digest) - 1]}_{digest}"
        found[name] = brain
    return found


def tools_for(caller: Caller, brains: dict[str, Brain]) -> list[Tool]:
    """The tools whose verbs the caller has: those of the brains first."""
    world = _world_hints(brains.values())
    agents = [_brain_tool(name, brain) for name, brain in brains.items()]
    verbs = [_turn_tool(tool, caller, world) for tool in TURN_TOOLS.values() if tool.needs <= caller.verbs]
    return [*(agents if caller.verbs >= BRAIN_TOOL_VERBS else ()), *verbs]


def _brain_tool(name: str, brain: Brain) -> Tool:
    destructive, open_world = _world_hints([brain])
    return Tool(
        name=name,
        description=brain.description or f"Ask the agent {brain.name}.",
        input_schema=_schema(BrainToolInput),
        output_schema=report_schema(brain.output_schema),
        annotations=ToolAnnotations(
            read_only_hint=False, destructive_hint=destructive, idempotent_hint=False, open_world_hint=open_world
        ),
    )


def _turn_tool(tool: TurnTool, caller: Caller, world: tuple[bool, bool]) -> Tool:
    schema = _schema(tool.input)
    if Verb.CONFIGURE not in caller.verbs:
        for option in CONFIGURE_OPTIONS & set(schema["properties"]):
            del schema["properties"][option]
    acts = tool.effect == "acts"
    return Tool(
        name=tool.name,
        description=tool.description,
        input_schema=schema,
        output_schema=report_schema(None)
        if tool.output is TurnReport
        else tool.output.model_json_schema(mode="serialization"),
        annotations=ToolAnnotations(
            read_only_hint=tool.effect == "looks",
            destructive_hint=tool.effect == "ends" or (acts and world[0]),
            idempotent_hint=tool.is_idempotent or tool.effect == "looks",
            open_world_hint=acts and world[1],
        ),
    )


def _schema(model: Any) -> dict[str, Any]:
    return model.model_json_schema()


def _world_hints(brains: Iterable[Brain]) -> tuple[bool, bool]:
    """Whether the brains' tools may destroy something, and whether they reach the outside world, as anything that is
    read may do."""
    effects = {spec.effect for brain in brains for spec in brain.tools.specs.values()}
    return Effect.DESTRUCTIVE in effects, bool(effects - {Effect.LOCAL_WRITE})
