"""Requests of chat clients: a new message, or answers to calls that wait. Sending one again changes nothing."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from brainq.access import Verb, own_request_key
from brainq.client.async_handle import AsyncTurnHandle
from brainq.client.options import SubmitOptions
from brainq.contracts.event import EventKind
from brainq.contracts.file import File
from brainq.contracts.ids import attended_turn_id, parse_call_id, split_call_id
from brainq.contracts.status import Awaits
from brainq.errors import InvalidInput, NotFound, ResultRefused, SessionBusy, SubmitConflict
from brainq.gateway.edge.dependencies import Gateway, Principal
from brainq.gateway.rest.approvals import decider_name
from brainq.gateway.wires.chat.files import read_history
from brainq.gateway.wires.chat.stream import StreamPosition, position_of_reply

# Calls of a client's own tools whose client has gone on: it asked anew in place of their results.

ABANDONED = "the client went on without the results of its calls"

ABANDON_AFTER_S = 60.0

"""How long a turn that comes to such calls later may wait for them, while another one of its session waits for it: its
client may be there, too."""

_watched: dict[str, asyncio.Task[None]] = {}


def bound_waits(options: SubmitOptions, most_s: float) -> None:
    """Let calls of the client's tools wait for so long and no longer."""
    if "client_tools" in options:
        tools = cast("Sequence[dict[str, Any]]", options["client_tools"])
        options["client_tools"] = [{**tool, "timeout_s": most_s} for tool in tools]


async def require_no_client_wait(here: Gateway, by: Principal, session_id: str) -> None:
    """Raise SessionBusy where the live turn waits for its client, and who asks anew may not cancel it."""
    if Verb.STEER in by.caller.verbs:
        return
    live = await here.client.session(session_id).live()
    if live and await _waits_for_client(await here.client.handle(live)):
        raise SessionBusy(session_id, live)


async def cancel_abandoned_calls(here: Gateway, by: Principal, session_id: str, turn_id: str) -> None:
    """Cancel the session's live turn where it waits for its client, who has begun `turn_id` since. It would keep the
    session waiting for a day."""
    live = await here.client.session(session_id).live()
    if not live or live == turn_id or Verb.STEER not in by.caller.verbs:
        return
    handle = await here.client.handle(live)
    if await _waits_for_client(handle):
        await handle.cancel(ABANDONED)
    elif live not in _watched:
        _watched[live] = asyncio.create_task(_cancel_when_abandoned(handle))
        _watched[live].add_done_callback(lambda _: _watched.pop(live, None))


async def _cancel_when_abandoned(handle: AsyncTurnHandle) -> None:
    async for event in handle.events():
        if event.kind is EventKind.TURN_PARKED and event.data["awaits"] == Awaits.CLIENT:
            await asyncio.sleep(ABANDON_AFTER_S)
            if await _waits_for_client(handle):
                await handle.cancel(ABANDONED)
                return


async def _waits_for_client(handle: AsyncTurnHandle) -> bool:
    snapshot = await handle.snapshot()
    return snapshot is not None and snapshot.awaits is Awaits.CLIENT


# What clients of chat wires send: a message, or answers for calls that wait. Sending it again changes nothing.

DECIDE_FIRST = "it waits for an approval: decide that, or cancel the turn, then send the message again"


@dataclass(frozen=True, slots=True)
class Question:
    """One message of the user's. `key`: what tells it from his others in the session, beside its text and files."""

    text: str
    key: str
    files: tuple[File, ...] = ()


@dataclass(frozen=True, slots=True)
class ApprovalDecision:
    """What a person decided about a call. `arguments`: in place of the model's; None: as they are."""

    call_id: str
    is_approved: bool
    reason: str = ""
    arguments: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ClientResult:
    """What came of a call of the client's own tool; with `error` there is no result."""

    call_id: str
    result: Any = None
    error: str = ""


CallAnswer = ApprovalDecision | ClientResult


async def submit_question(
    here: Gateway,
    by: Principal,
    session_id: str,
    question: Question,
    options: SubmitOptions,
    history: Sequence[dict[str, Any]] = (),
) -> AsyncTurnHandle:
    """The turn of a question: the one that was begun when it was sent first, or a new one.

    history   what was said before it, which a session that is new begins with

    Nothing new is begun while the live turn wants an approval: it would wait behind that, and its reader with it.

    Raises as `AsyncClient.submit`; SessionBusy.
    """
    by.require_verb(Verb.READ)
    key = own_request_key(by.caller, session_id, _request_key(session_id, question, options.get("brain")))
    found = await _find_turn(here, session_id, key)
    if found is not None:
        return found
    await require_no_client_wait(here, by, session_id)
    session = here.client.session(session_id)
    live = await session.live()
    if live is not None:
        asked = await (await here.client.handle(live)).approvals()
        if any(approval.state == "pending" for approval in asked):
            raise SessionBusy(session_id, live, DECIDE_FIRST)
    if history and not await session.history(1):
        options = {**options, "history": read_history(history)}
    if options.get("client_tools"):
        # A page that was closed never answers, and the model would go on for nobody.
        options = {**options, "turn_id": attended_turn_id()}
        bound_waits(options, here.settings.http_client_tools_s)
    if question.files:
        options = {**options, "attachments": question.files}
    try:
        handle = await here.client.submit(session_id, question.text, **{**options, "request_key": key})
    except SubmitConflict:  # it was sent twice at once, and the other came with other things beside it
        found = await _find_turn(here, session_id, key)
        if found is None:
            raise
        return found
    await cancel_abandoned_calls(here, by, session_id, handle.turn_id)
    return handle


async def apply_answers(
    here: Gateway, by: Principal, session_id: str, answers: Sequence[CallAnswer]
) -> tuple[AsyncTurnHandle, StreamPosition]:
    """Decide and give, each once. The turn, and how much of it who answers has read.

    Raises InvalidInput for calls of several turns; NotFound for those of another session; ApprovalDecided.
    """
    by.require_verb(Verb.READ)
    for one in answers:
        by.require_verb(Verb.DECIDE if isinstance(one, ApprovalDecision) else Verb.STEER)
    turn_ids = {split_call_id(one.call_id)[0] for one in answers}
    if len(turn_ids) != 1:
        raise InvalidInput("messages", "they answer calls of several turns; answer those of one at a time")
    handle = await here.client.handle(turn_ids.pop())
    by.require(handle.session_id)
    if handle.session_id != session_id:
        raise NotFound("a turn of another session")
    steps = [parse_call_id(split_call_id(one.call_id)[1])[0] for one in answers]
    behind = await position_of_reply(handle, max(steps))
    for one in answers:
        if isinstance(one, ApprovalDecision):
            await _apply_decision(here, decider_name(by, ""), one)
        else:
            await _give_result(handle, one)
    return handle, behind


async def _apply_decision(here: Gateway, decided_by: str, decision: ApprovalDecision) -> None:
    if not decision.is_approved:
        await here.client.deny(decision.call_id, decision.reason, by=decided_by)
    elif decision.arguments is None:
        await here.client.approve(decision.call_id, by=decided_by)
    else:
        await here.client.edit(decision.call_id, decision.arguments, by=decided_by)


async def _give_result(handle: AsyncTurnHandle, given: ClientResult) -> None:
    try:
        if given.error:
            await handle.give_error(given.call_id, given.error)
        else:
            await handle.give_result(given.call_id, given.result)
    except ResultRefused:
        pass  # it has one: what it says is told next


def _request_key(session_id: str, question: Question, brain: str | None) -> str:
    hashes = [file.attachment.sha256 for file in question.files]
    said = "\n".join((session_id, brain or "", question.key, question.text, *hashes))
    return f"chat-{hashlib.sha256(said.encode('utf-8', 'surrogatepass')).hexdigest()[:40]}"


async def _find_turn(here: Gateway, session_id: str, key: str) -> AsyncTurnHandle | None:
    try:
        found = await here.client.find(key)
    except NotFound:
        return None
    return found if found.session_id == session_id else None
