"""The verbs of turns as tools: what each takes, needs, gives and does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

import anyio
from pydantic import BaseModel

from brainq.access import Verb
from brainq.contracts.approval import Approval
from brainq.contracts.event import TurnEvent
from brainq.contracts.ids import split_call_id
from brainq.contracts.mailbox import Receipt
from brainq.http.approvals import decider
from brainq.http.bodies.base import Body
from brainq.http.bodies.people import Approvals
from brainq.http.bodies.submit import SubmitBody
from brainq.http.bodies.turns import CancelAnswer, TurnPage
from brainq.http.event_stream import REST_S, begin
from brainq.http.lists import without_strange_parent
from brainq.http.mcp.asked import Asked
from brainq.http.mcp.calls_in_flight import CallsInFlight, own_session
from brainq.http.mcp.following import follow
from brainq.http.mcp.progress import Progress
from brainq.http.mcp.told import TurnTold, told
from brainq.http.mcp.tool_bodies import (
    ApprovalsInput,
    ApproveInput,
    CancelInput,
    DenyInput,
    ListInput,
    ResultInput,
    SteerInput,
    SubmitInput,
    Watched,
    WatchInput,
)
from brainq.http.submitting import accept, require_submit


@dataclass(frozen=True, slots=True)
class TurnTool:
    """One verb.

    needs     the caller's verbs without which it is not there
    effect    `looks`; `acts`: what the agents' tools may do; `ends`: nothing is undone by it, and nothing begun;
              `says`: neither
    is_idempotent   doing it again changes nothing
    """

    name: str
    description: str
    needs: frozenset[Verb]
    input: type[Body]
    output: type[BaseModel]
    effect: Literal["looks", "acts", "ends", "says"]
    run: Callable[[Asked, Any, CallsInFlight], Awaitable[BaseModel]]
    is_idempotent: bool = False


async def _submit(asked: Asked, given: SubmitInput, calls: CallsInFlight) -> TurnTold:
    key = calls.request_key(asked)
    said = {name: getattr(given, name) for name in given.model_fields_set - {"message", "session"}}
    body = SubmitBody(
        session_id=given.session or own_session(asked.caller, key), user_message=given.message, **said
    )
    require_submit(asked.by(Verb.SUBMIT), body)
    handle = await accept(asked.here, body, key)
    if Verb.READ in asked.caller.verbs:
        return await told(asked, handle)
    return TurnTold(turn_id=handle.turn_id, session=handle.session_id, state="accepted")


async def _result(asked: Asked, given: ResultInput, calls: CallsInFlight) -> TurnTold:
    handle = await asked.turn(given.turn_id)
    if not given.wait_s:
        return await told(asked, handle)
    progress = Progress(lambda done, words: asked.context.session.report_progress(done, message=words))
    wait_s = min(given.wait_s, asked.here.settings.http_wait_s)
    with asked.here.streams.enter(asked.caller.counted_as) as place:
        found = await follow(asked, handle, place, 0, wait_s, progress)
    return await told(asked, handle, found.seq)


async def _watch(asked: Asked, given: WatchInput, calls: CallsInFlight) -> Watched:
    handle = await asked.turn(given.turn_id)
    clock = asyncio.get_running_loop().time
    until = clock() + min(given.wait_s, asked.here.settings.http_wait_s)
    events: list[TurnEvent] = []
    is_over = False
    with asked.here.streams.enter(asked.caller.counted_as) as place:
        reading = await begin(handle, given.after)
        stopping = asyncio.ensure_future(place.stopping.wait())
        try:
            while reading is not None and len(events) < given.limit and not stopping.done():
                rest_s = REST_S if events else max(REST_S, until - clock())
                await asyncio.wait(
                    {reading.next, stopping}, timeout=rest_s, return_when=asyncio.FIRST_COMPLETED
                )
                event = reading.next.result() if reading.next.done() else None
                if event is None:
                    is_over = reading.next.done()
                    break
                events.append(event)
                if event.is_final:
                    is_over = True
                    break
                reading.advance()
        finally:
            stopping.cancel()
            if reading is not None:
                with anyio.CancelScope(shield=True):
                    await reading.close()
    return Watched(
        turn_id=handle.turn_id,
        session=handle.session_id,
        events=tuple(events),
        next=events[-1].seq if events else given.after,
        is_over=is_over or reading is None,
    )


async def _steer(asked: Asked, given: SteerInput, calls: CallsInFlight) -> Receipt:
    asked.by(Verb.SUBMIT)
    handle = await asked.turn(given.turn_id, Verb.STEER)
    return await handle.steer(given.text, client_message_id=given.client_message_id)


async def _cancel(asked: Asked, given: CancelInput, calls: CallsInFlight) -> CancelAnswer:
    handle = await asked.turn(given.turn_id, Verb.STEER)
    return CancelAnswer(cancelled=await handle.cancel(given.reason))


async def _approve(asked: Asked, given: ApproveInput, calls: CallsInFlight) -> Approval:
    await asked.turn(split_call_id(given.approval_id)[0], Verb.DECIDE)
    who = decider(asked.by(Verb.DECIDE), "")
    client = asked.here.client
    if given.arguments is not None:
        return await client.edit(given.approval_id, given.arguments, by=who, args_hash=given.args_hash)
    return await client.approve(given.approval_id, by=who, args_hash=given.args_hash)


async def _deny(asked: Asked, given: DenyInput, calls: CallsInFlight) -> Approval:
    await asked.turn(split_call_id(given.approval_id)[0], Verb.DECIDE)
    who = decider(asked.by(Verb.DECIDE), "")
    return await asked.here.client.deny(given.approval_id, given.reason, by=who)


async def _list(asked: Asked, given: ListInput, calls: CallsInFlight) -> TurnPage:
    found = await asked.here.client.turns(
        given.session,
        given.state,
        given.limit,
        asked.by(Verb.READ).caller.prefixes,
        brain=given.brain,
        text=given.text,
        after=given.after,
    )
    found = tuple(without_strange_parent(turn, asked.by(Verb.READ)) for turn in found)
    return TurnPage(turns=found, next=found[-1].turn_id if len(found) == given.limit else None)


async def _approvals(asked: Asked, given: ApprovalsInput, calls: CallsInFlight) -> Approvals:
    by = asked.by(Verb.READ)
    if given.session is not None:
        by.require(given.session)
    found = await asked.here.client.approvals(
        given.session, "pending", given.limit, session_prefixes=by.caller.prefixes
    )
    return Approvals(approvals=found)


def _needs(*verbs: Verb) -> frozenset[Verb]:
    return frozenset(verbs)


TURN_TOOLS: dict[str, TurnTool] = {
    tool.name: tool
    for tool in (
        TurnTool(
            "submit",
            "Begin a turn of an agent and return at once, with the turn's id. It goes on by itself; `result` has its "
            "answer.",
            _needs(Verb.SUBMIT),
            SubmitInput,
            TurnTold,
            "acts",
            _submit,
        ),
        TurnTool(
            "result",
            "How a turn ended, or how it stands; with wait_s, wait for its end.",
            _needs(Verb.READ),
            ResultInput,
            TurnTold,
            "looks",
            _result,
        ),
        TurnTool(
            "watch",
            "What a turn did since an event's number: steps, tool calls, text. With wait_s, wait for something new.",
            _needs(Verb.READ),
            WatchInput,
            Watched,
            "looks",
            _watch,
        ),
        TurnTool(
            "list",
            "Turns, the newest first.",
            _needs(Verb.READ),
            ListInput,
            TurnPage,
            "looks",
            _list,
        ),
        TurnTool(
            "approvals",
            "Tool calls of agents that wait for somebody's approval, with their arguments.",
            _needs(Verb.READ),
            ApprovalsInput,
            Approvals,
            "looks",
            _approvals,
        ),
        TurnTool(
            "steer",
            "Say something to an agent while its turn runs. If the turn has ended, it becomes a turn of its own.",
            _needs(Verb.STEER, Verb.SUBMIT),
            SteerInput,
            Receipt,
            "acts",
            _steer,
        ),
        TurnTool(
            "cancel",
            "Stop a turn. What its tools have done already stays done.",
            _needs(Verb.STEER),
            CancelInput,
            CancelAnswer,
            "ends",
            _cancel,
            is_idempotent=True,
        ),
        TurnTool(
            "approve",
            "Let a tool call run that waits for an approval. Only for people to decide: ask your user first.",
            _needs(Verb.DECIDE),
            ApproveInput,
            Approval,
            "acts",
            _approve,
            is_idempotent=True,
        ),
        TurnTool(
            "deny",
            "Refuse a tool call that waits for an approval; its turn goes on without it.",
            _needs(Verb.DECIDE),
            DenyInput,
            Approval,
            "says",
            _deny,
            is_idempotent=True,
        ),
    )
}
