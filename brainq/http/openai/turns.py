"""Turns of a request: the one that it submits, or the one whose calls it brings results for."""

from __future__ import annotations

import hashlib
from typing import Any

from fastapi import Request

from brainq.access import Verb, own_request_key
from brainq.client.async_handle import AsyncTurnHandle
from brainq.client.options import SubmitOptions
from brainq.contracts.brought import newest_that_fit
from brainq.contracts.ids import DERIVED, check_id, is_unnamed_session, new_turn_id, unnamed_session
from brainq.errors import InvalidInput, NotFound, ResultRefused, SubmitConflict
from brainq.http.gateway import Asker, Gateway
from brainq.http.left_calls import bound_waits, leave_calls, require_free
from brainq.http.openai.conversation import Question, Results
from brainq.http.openai.following import Wanted, wanted_of
from brainq.http.openai.parts import State, advance
from brainq.http.openai.tries import begin_try, number_of
from brainq.http.sent_files import with_bytes
from brainq.tools.with_files import WithFiles


async def request_key(here: Gateway, request: Request, by: Asker, body: dict[str, Any]) -> str:
    """The key that the request brings. Official clients bring none and say which try a request is, and no more: then it
    is known again by who asks, and what. Others ask anew each time."""
    given = request.headers.get("idempotency-key")
    if given is None:
        number = number_of(request.scope)
        return new_turn_id() if number is None else await begin_try(here, request, by, number, body)
    if given.startswith(DERIVED):
        raise InvalidInput("Idempotency-Key", f"it begins with {' or '.join(DERIVED)}; choose another")
    return check_id("Idempotency-Key", given)


async def ask(
    here: Gateway,
    by: Asker,
    question: Question,
    session_id: str | None,
    key: str,
    options: SubmitOptions,
    turn_id: str | None = None,
) -> AsyncTurnHandle:
    """The turn of a question. Without a session it begins one of its own, among the caller's.

    turn_id   of a turn that is new
    """
    by.require_verb(Verb.READ)
    session = session_id or _own_session(by, key)
    by.require(check_id("session", session))
    await require_free(here, by, session)
    if is_unnamed_session(session):
        # Many clients read the arguments of a call and never send a result: nobody may come back to such a session.
        bound_waits(options, here.settings.http_client_tools_s)
    options["request_key"] = own_request_key(by.caller, session, key)
    if question.instructions:
        options["skill_context"] = question.instructions
    by.require_options(
        name for name in options if name not in ("limits", "options")
    )  # these were narrowed, where they had to be
    if turn_id is not None:
        options["turn_id"] = turn_id
    if question.files:
        options["attachments"] = question.files
    brings: SubmitOptions = {**options}
    if question.history:
        brings["history"] = with_bytes(newest_that_fit(question.history), question.brought)
    if session_id is None or not question.history:
        handle = await here.client.submit(session, question.text, **brings)
    else:
        handle = await _ask_known(here, session, question.text, options, brings)
    if session_id is not None and handle.created:
        await leave_calls(here, by, session, handle.turn_id)
    return handle


async def give(here: Gateway, by: Asker, given: Results) -> tuple[AsyncTurnHandle, Wanted]:
    """The turn that the results are for, with them given; sending them again changes nothing.

    Raises InvalidInput where a call that was asked for with them has none: the turn would wait for it.
    """
    by.require_verb(Verb.READ)
    by.require_verb(Verb.STEER)
    handle = await here.client.handle(given.turn_id)
    by.require(handle.session_id)
    waiting = await _waiting(handle)
    if missing := sorted(set(waiting) - given.calls):
        raise InvalidInput(
            given.field, f"the call {waiting[missing[0]]!r} has no result; send one for each call"
        )
    if (given.text or given.files) and waiting:
        by.require_verb(Verb.SUBMIT)  # input that comes as the turn ends becomes a turn of its own
        hashes = [file.attachment.sha256 for file in given.files]
        said = f"{given.turn_id} {sorted(given.calls)} {given.text}{hashes or ''}"
        digest = hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()
        # Before the results: with the last of them the turn goes on.
        await handle.steer(given.text, client_message_id=f"oa-{digest[:40]}", attachments=given.files)
    for call, text, files in given.results:
        try:
            await handle.give_result(call, WithFiles(text, files) if files else text)
        except ResultRefused as refusal:
            if not refusal.was_given:
                raise InvalidInput("messages", str(refusal)) from None
        except NotFound:
            if await handle.snapshot() is not None:
                raise
    return handle, await wanted_of(here, handle, behind=given.calls)


async def _waiting(handle: AsyncTurnHandle) -> dict[str, str]:
    """The calls that wait for the client: their ids in the turn, and whole."""
    state = State(handle.turn_id)
    for event in await handle.events_so_far():
        state, _ = advance(state, event)
    return {call: asked.id for call, asked in state.waiting.items()}


async def _ask_known(
    here: Gateway, session: str, text: str, options: SubmitOptions, brings: SubmitOptions
) -> AsyncTurnHandle:
    """A session that goes on takes only what is new. What brought its conversation along when it was tried first does
    so again: the same key with other content would be refused."""
    if not await here.client.session(session).history(limit=1):
        return await here.client.submit(session, text, **brings)
    try:
        return await here.client.submit(session, text, **options)
    except SubmitConflict:
        return await here.client.submit(session, text, **brings)


def _own_session(by: Asker, key: str) -> str:
    prefix = "" if by.caller.prefixes is None else by.caller.prefixes[0]
    return unnamed_session(prefix, hashlib.sha256(f"{prefix} {key}".encode()).hexdigest())
