"""What clients of chat wires send: a message, or answers for calls that wait. Sending it again changes nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from brainq.access import Verb, own_request_key
from brainq.client.async_handle import AsyncTurnHandle
from brainq.client.options import SubmitOptions
from brainq.contracts.file import File
from brainq.contracts.ids import attended_turn_id, call_place, split_call_id
from brainq.errors import InvalidInput, NotFound, ResultRefused, SessionBusy, SubmitConflict
from brainq.http.approvals import decider
from brainq.http.chat_stream import Mark, reply_of
from brainq.http.gateway import Asker, Gateway
from brainq.http.left_calls import bound_waits, leave_calls, require_free
from brainq.http.sent_files import brought

DECIDE_FIRST = "it waits for an approval: decide that, or cancel the turn, then send the message again"


@dataclass(frozen=True, slots=True)
class Question:
    """One message of the user's. `key`: what tells it from his others in the session, beside its text and files."""

    text: str
    key: str
    files: tuple[File, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person decided about a call. `arguments`: in place of the model's; None: as they are."""

    call_id: str
    is_approved: bool
    reason: str = ""
    arguments: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Given:
    """What came of a call of the client's own tool; with `error` there is no result."""

    call_id: str
    result: Any = None
    error: str = ""


Answer = Decision | Given


async def ask(
    here: Gateway,
    by: Asker,
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
    found = await _find(here, session_id, key)
    if found is not None:
        return found
    await require_free(here, by, session_id)
    session = here.client.session(session_id)
    live = await session.live()
    if live is not None:
        asked = await (await here.client.handle(live)).approvals()
        if any(approval.state == "pending" for approval in asked):
            raise SessionBusy(session_id, live, DECIDE_FIRST)
    if history and not await session.history(1):
        options = {**options, "history": brought(history)}
    if options.get("client_tools"):
        # A page that was closed never answers, and the model would go on for nobody.
        options = {**options, "turn_id": attended_turn_id()}
        bound_waits(options, here.settings.http_client_tools_s)
    if question.files:
        options = {**options, "attachments": question.files}
    try:
        handle = await here.client.submit(session_id, question.text, **{**options, "request_key": key})
    except SubmitConflict:  # it was sent twice at once, and the other came with other things beside it
        found = await _find(here, session_id, key)
        if found is None:
            raise
        return found
    await leave_calls(here, by, session_id, handle.turn_id)
    return handle


async def answer(
    here: Gateway, by: Asker, session_id: str, answers: Sequence[Answer]
) -> tuple[AsyncTurnHandle, Mark]:
    """Decide and give, each once. The turn, and how much of it who answers has read.

    Raises InvalidInput for calls of several turns; NotFound for those of another session; ApprovalDecided.
    """
    by.require_verb(Verb.READ)
    for one in answers:
        by.require_verb(Verb.DECIDE if isinstance(one, Decision) else Verb.STEER)
    turn_ids = {split_call_id(one.call_id)[0] for one in answers}
    if len(turn_ids) != 1:
        raise InvalidInput("messages", "they answer calls of several turns; answer those of one at a time")
    handle = await here.client.handle(turn_ids.pop())
    by.require(handle.session_id)
    if handle.session_id != session_id:
        raise NotFound("a turn of another session")
    steps = [call_place(split_call_id(one.call_id)[1])[0] for one in answers]
    behind = await reply_of(handle, max(steps))
    for one in answers:
        if isinstance(one, Decision):
            await _decide(here, decider(by, ""), one)
        else:
            await _give(handle, one)
    return handle, behind


async def _decide(here: Gateway, decided_by: str, decision: Decision) -> None:
    if not decision.is_approved:
        await here.client.deny(decision.call_id, decision.reason, by=decided_by)
    elif decision.arguments is None:
        await here.client.approve(decision.call_id, by=decided_by)
    else:
        await here.client.edit(decision.call_id, decision.arguments, by=decided_by)


async def _give(handle: AsyncTurnHandle, given: Given) -> None:
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


async def _find(here: Gateway, session_id: str, key: str) -> AsyncTurnHandle | None:
    try:
        found = await here.client.find(key)
    except NotFound:
        return None
    return found if found.session_id == session_id else None
