"""The tools: one for each verb of turns, and the tool of a brain."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

import anyio
from mcp_types import CallToolRequestParams, CallToolResult, InputRequiredResult
from pydantic import BaseModel, Field, JsonValue

from brainq.app.access import Verb
from brainq.client.async_handle import AsyncTurnHandle
from brainq.client.checks import MAX_COMMENT_CHARS, MAX_REASON_CHARS
from brainq.contracts.descriptions import TURN_FILTERS, TURN_OPTIONS
from brainq.contracts.event import TurnEvent
from brainq.contracts.ids import split_call_id
from brainq.contracts.people import Approval, Receipt
from brainq.contracts.turn import MAX_EXTRA_CHARS, MAX_MESSAGE_CHARS
from brainq.contrib.mcp_server import following
from brainq.contrib.mcp_server.requests import CallsInFlight, McpRequest, default_session, read_input
from brainq.contrib.mcp_server.turn_report import TurnReport, report_turn, tool_result
from brainq.engine.brain.brain import Brain
from brainq.gateway.edge.limits import StreamSlot
from brainq.gateway.edge.request import CALL_ID, ID, TURN_ID
from brainq.gateway.rest import bodies
from brainq.gateway.rest.event_stream import GATHER_S, open_events
from brainq.gateway.rest.turn_control import ApprovalList, ArgsHashField, CancelAnswer, decide
from brainq.gateway.rest.turns import TurnPage, hide_foreign_parent

MAX_EVENTS = 200
WAIT_FIELD = Field(default=0, ge=0, allow_inf_nan=False, description="The number of seconds to wait.")
WAIT_S = 50.0
"""The default wait. It is less than the minute after which clients abandon a call and cancel its turn."""
BRAIN_TOOL_VERBS = frozenset({Verb.SUBMIT, Verb.READ})
Run = Callable[[McpRequest, Any, CallsInFlight], Awaitable[BaseModel]]


class TurnInput(bodies.Body):
    turn_id: str = Field(pattern=TURN_ID)


@bodies.described(TURN_OPTIONS)
class SubmitInput(bodies.Body):
    """A message and options, which default to the agent's own."""

    message: str = Field(min_length=1, max_length=MAX_MESSAGE_CHARS)
    session: str | None = Field(default=None, pattern=ID, description="The conversation; by default a new one.")
    brain: str | None = Field(default=None, pattern=ID)
    on_busy: Literal["enqueue", "reject"] = Field(
        default="enqueue", description="Whether to wait or to refuse if the session already has a turn."
    )
    metadata: dict[str, JsonValue] | None = None
    output_schema: dict[str, Any] | None = None
    model: str | None = None
    provider: str | None = None
    system_prompt: str | None = Field(default=None, max_length=MAX_EXTRA_CHARS)
    skill_context: str | None = Field(default=None, max_length=MAX_EXTRA_CHARS)
    cwd: str | None = Field(default=None, max_length=4096)
    limits: bodies.TurnLimits | None = None
    options: bodies.OptionsBody | None = None


class ResultInput(TurnInput):
    wait_s: float = WAIT_FIELD


class WatchInput(TurnInput):
    after: int = Field(default=0, ge=0, description="Begin after this event: `next` of the previous answer.")
    wait_s: float = WAIT_FIELD
    limit: int = Field(default=MAX_EVENTS, ge=1, le=1_000)


class SteerInput(TurnInput):
    text: str = Field(min_length=1, max_length=MAX_MESSAGE_CHARS, description="The agent reads it next.")
    client_message_id: str | None = Field(
        default=None, pattern=ID, description="Sending the same id again has no effect."
    )


class CancelInput(TurnInput):
    reason: str = Field(default="", max_length=MAX_REASON_CHARS)


class ApproveInput(bodies.Body):
    approval_id: str = Field(pattern=CALL_ID)
    args_hash: str | None = ArgsHashField
    arguments: dict[str, JsonValue] | None = Field(
        default=None, description="Arguments to run it with instead of the agent's."
    )


class DenyInput(bodies.Body):
    approval_id: str = Field(pattern=CALL_ID)
    reason: str = Field(default="", max_length=MAX_COMMENT_CHARS, description="The agent reads it.")


@bodies.described(TURN_FILTERS)
class ListInput(bodies.Body):
    session: str | None = Field(default=None, pattern=ID)
    brain: str | None = Field(default=None, pattern=ID)
    state: Literal["accepted", "ended"] | None = Field(
        default=None, description="`accepted`: turns that have not ended."
    )
    text: str = Field(default="", max_length=128)
    limit: int = Field(default=bodies.DEFAULT_LIST_PAGE, ge=1, le=1_000)
    after: str | None = Field(default=None, pattern=TURN_ID, description=bodies.AFTER)


class ApprovalsInput(bodies.Body):
    session: str | None = Field(default=None, pattern=ID)
    limit: int = Field(default=bodies.DEFAULT_LIST_PAGE, ge=1, le=1_000)


class EventPage(bodies.Answer):
    """A page of a turn's events, in order.

    Pass `next` as `after` to continue; `is_over` is true after the last event.
    """

    turn_id: str
    session: str
    events: tuple[TurnEvent, ...]
    next: int
    is_over: bool


@dataclass(frozen=True, slots=True)
class TurnTool:
    """A tool for a verb of turns.

    needs           the verbs without which a caller does not see the tool
    effect          `looks`: only reads; `acts`: may do what the agents' tools do; `ends`: is destructive; `neutral`
    is_idempotent   True if a repeated call changes nothing
    """

    name: str
    description: str
    needs: frozenset[Verb]
    input: type[bodies.Body]
    output: type[BaseModel]
    effect: Literal["looks", "acts", "ends", "neutral"]
    run: Run
    is_idempotent: bool


TURN_TOOLS: dict[str, TurnTool] = {}


def _tool(
    name: str,
    args: type[bodies.Body],
    output: type[BaseModel],
    effect: Literal["looks", "acts", "ends", "neutral"],
    *needs: Verb,
    is_idempotent: bool = False,
) -> Callable[[Run], Run]:
    """Register the function as a tool. Its docstring is the description for clients."""

    def add(run: Run) -> Run:
        description = " ".join((run.__doc__ or "").split())
        TURN_TOOLS[name] = TurnTool(name, description, frozenset(needs), args, output, effect, run, is_idempotent)
        return run

    return add


@_tool("submit", SubmitInput, TurnReport, "acts", Verb.SUBMIT)
async def _submit(request: McpRequest, args: SubmitInput, calls: CallsInFlight) -> TurnReport:
    """Begin a turn of an agent and return its id at once. The turn continues by itself; `result` has its answer."""
    key = calls.request_key(request)
    fields = {name: getattr(args, name) for name in args.model_fields_set - {"message", "session"}}
    body = bodies.SubmitBody(
        session_id=args.session or default_session(request.caller, key), user_message=args.message, **fields
    )
    bodies.require_may_submit(request.needing(Verb.SUBMIT), body.session_id, body)
    handle = await bodies.submit_turn(request.gateway, body, key)
    if Verb.READ in request.caller.verbs:
        return await report_turn(request, handle)
    return TurnReport(turn_id=handle.turn_id, session=handle.session_id, state="accepted")


@_tool("result", ResultInput, TurnReport, "looks", Verb.READ)
async def _result(request: McpRequest, args: ResultInput, calls: CallsInFlight) -> TurnReport:
    """Get a turn's outcome or state. With wait_s, wait for its end."""
    handle = await request.own_turn(args.turn_id)
    if not args.wait_s:
        return await report_turn(request, handle)
    progress = following.ProgressReporter(
        lambda done, words: request.context.session.report_progress(done, message=words)
    )
    wait_s = min(args.wait_s, request.gateway.settings.http_wait_s)
    with request.stream_slot() as slot:
        found = await following.follow_turn(request, handle, slot, 0, wait_s, progress)
    return await report_turn(request, handle, found.last_event)


@_tool("watch", WatchInput, EventPage, "looks", Verb.READ)
async def _watch(request: McpRequest, args: WatchInput, calls: CallsInFlight) -> EventPage:
    """List a turn's events after a number: steps, tool calls, text. With wait_s, wait for a new event."""
    handle = await request.own_turn(args.turn_id)
    clock = asyncio.get_running_loop().time
    until = clock() + min(args.wait_s, request.gateway.settings.http_wait_s)
    events: list[TurnEvent] = []
    is_over = False
    with request.stream_slot() as slot:
        reading = await open_events(handle, args.after)
        stopping = asyncio.ensure_future(slot.stopping.wait())
        try:
            while reading is not None and len(events) < args.limit and not stopping.done():
                if not await reading.wait(GATHER_S if events else max(GATHER_S, until - clock()), stopping):
                    break
                event = reading.next.result()
                if event is not None:
                    events.append(event)
                if event is None or event.is_final:
                    is_over = True
                    break
                reading.advance()
        finally:
            stopping.cancel()
            if reading is not None:
                with anyio.CancelScope(shield=True):
                    await reading.close()
    return EventPage(
        turn_id=handle.turn_id,
        session=handle.session_id,
        events=tuple(events),
        next=events[-1].seq if events else args.after,
        is_over=is_over or reading is None,
    )


@_tool("list", ListInput, TurnPage, "looks", Verb.READ)
async def _list(request: McpRequest, args: ListInput, calls: CallsInFlight) -> TurnPage:
    """List turns, newest first."""
    found = await request.client.turns(
        args.session,
        args.state,
        args.limit,
        request.caller.prefixes,
        brain=args.brain,
        text=args.text,
        after=args.after,
    )
    found = tuple(hide_foreign_parent(turn, request) for turn in found)
    return TurnPage(turns=found, next=found[-1].turn_id if len(found) == args.limit else None)


@_tool("approvals", ApprovalsInput, ApprovalList, "looks", Verb.READ)
async def _approvals(request: McpRequest, args: ApprovalsInput, calls: CallsInFlight) -> ApprovalList:
    """List the agents' tool calls that wait for an approval, with their arguments."""
    if args.session is not None:
        request.require_session(args.session)
    found = await request.client.approvals(
        args.session, "pending", args.limit, session_prefixes=request.caller.prefixes
    )
    return ApprovalList(approvals=found)


@_tool("steer", SteerInput, Receipt, "acts", Verb.STEER, Verb.SUBMIT)
async def _steer(request: McpRequest, args: SteerInput, calls: CallsInFlight) -> Receipt:
    """Send a message to an agent during its turn. If the turn has ended, the message begins a new turn."""
    request.require_verb(Verb.SUBMIT)
    handle = await request.needing(Verb.STEER).own_turn(args.turn_id)
    return await handle.steer(args.text, client_message_id=args.client_message_id)


@_tool("cancel", CancelInput, CancelAnswer, "ends", Verb.STEER, is_idempotent=True)
async def _cancel(request: McpRequest, args: CancelInput, calls: CallsInFlight) -> CancelAnswer:
    """Stop a turn. What its tools have already done is not undone."""
    handle = await request.needing(Verb.STEER).own_turn(args.turn_id)
    return CancelAnswer(cancelled=await handle.cancel(args.reason))


@_tool("approve", ApproveInput, Approval, "acts", Verb.DECIDE, is_idempotent=True)
async def _approve(request: McpRequest, args: ApproveInput, calls: CallsInFlight) -> Approval:
    """Approve a tool call that waits for an approval. This is for people to decide, so ask your user first."""
    return await _decide_own(request, approves=True, **args.model_dump())


@_tool("deny", DenyInput, Approval, "neutral", Verb.DECIDE, is_idempotent=True)
async def _deny(request: McpRequest, args: DenyInput, calls: CallsInFlight) -> Approval:
    """Deny a tool call that waits for an approval. Its turn continues without it."""
    return await _decide_own(request, approves=False, **args.model_dump())


async def _decide_own(request: McpRequest, approval_id: str, **decision: Any) -> Approval:
    deciding = request.needing(Verb.DECIDE)
    await deciding.own_turn(split_call_id(approval_id)[0])
    return await decide(deciding, approval_id, **decision)


class BrainToolInput(bodies.Body):
    """A message for the agent."""

    message: str = Field(min_length=1, max_length=MAX_MESSAGE_CHARS, description="The task or question.")
    session: str | None = Field(
        default=None,
        pattern=ID,
        description="The session of an earlier answer, to continue that conversation; by default a new one.",
    )
    wait_s: float | None = Field(
        default=None,
        ge=0,
        allow_inf_nan=False,
        description=f"The number of seconds to wait for the answer; by default {WAIT_S:g}. An agent that has not "
        "finished continues, and `result` has its answer later.",
    )


async def run_brain_tool(
    request: McpRequest, brain: Brain, params: CallToolRequestParams, calls: CallsInFlight
) -> CallToolResult | InputRequiredResult:
    """Begin a turn of this brain, or continue the turn whose approvals the client's user has decided."""
    request.require_verb(Verb.READ)
    args = read_input(BrainToolInput, "arguments", params.arguments or {})
    wait_s = min(WAIT_S if args.wait_s is None else args.wait_s, request.gateway.settings.http_wait_s)
    with request.stream_slot() as slot:
        if params.request_state is not None:
            shown = following.read_round(params.request_state)
            with calls.cancelled_with(request, slot, shown.turn_id):
                handle = await request.own_turn(shown.turn_id)
                if not await following.apply_decisions(request, shown, params.input_responses or {}):
                    return tool_result(request, await report_turn(request, handle, shown.seq))
                return await _follow_turn(request, slot, handle, shown.seq, wait_s)
        key = calls.request_key(request)
        body = bodies.SubmitBody(
            session_id=args.session or default_session(request.caller, key), user_message=args.message, brain=brain.name
        )
        bodies.require_may_submit(request.needing(Verb.SUBMIT), body.session_id, body)
        with calls.cancelled_with(request, slot, key):
            return await _follow_turn(request, slot, await bodies.submit_turn(request.gateway, body, key), 0, wait_s)


async def _follow_turn(
    request: McpRequest, slot: StreamSlot, handle: AsyncTurnHandle, after: int, wait_s: float
) -> CallToolResult | InputRequiredResult:
    progress = following.ProgressReporter(
        lambda done, words: request.context.session.report_progress(done, message=words)
    )
    while True:
        found = await following.follow_turn(request, handle, slot, after, wait_s, progress)
        if not found.approvals or not following.can_elicit(request):
            return tool_result(request, await report_turn(request, handle, found.last_event))
        if request.is_modern:
            return following.elicitation_result(handle, found.last_event, found.approvals)
        if not await following.elicit_now(request, handle, found.last_event, found.approvals, slot):
            return tool_result(request, await report_turn(request, handle, found.last_event))
        after = found.last_event
