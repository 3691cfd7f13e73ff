"""The turn of a request: the one that it submits, or the one that it brings results for."""

from __future__ import annotations

import hashlib
from typing import Any

from brainq.access import Caller, Verb, own_request_key
from brainq.client.async_handle import AsyncTurnHandle
from brainq.client.options import SubmitOptions
from brainq.contracts.conversation import newest_within_limits
from brainq.contracts.ids import (
    DERIVED_PREFIXES,
    check_id,
    full_call_id,
    is_unnamed_session,
    new_turn_id,
    unnamed_session,
)
from brainq.errors import InvalidInput, NotFound, ResultRefused, SubmitConflict
from brainq.gateway.edge.request import GatewayRequest, HttpRequest
from brainq.gateway.wires.chat.requests import bound_waits, cancel_abandoned_calls, embed_files, require_no_client_wait
from brainq.gateway.wires.openai.messages import ToolResults, TurnInput
from brainq.gateway.wires.openai.part_reader import PartSelector, fold_so_far, select_part
from brainq.gateway.wires.openai.retries import begin_try, try_number
from brainq.tools.results import WithFiles


async def request_key(request: HttpRequest, body: dict[str, Any]) -> str:
    """The request's key. Official clients send only the number of the try; then the caller and the content identify the
    request. Of other clients each request is new."""
    given = request.http.headers.get("idempotency-key")
    if given is None:
        number = try_number(request.http.scope)
        return new_turn_id() if number is None else await begin_try(request, number, body)
    if given.startswith(DERIVED_PREFIXES):
        raise InvalidInput("Idempotency-Key", f"it begins with {' or '.join(DERIVED_PREFIXES)}; choose another")
    return check_id("Idempotency-Key", given)


async def submit_request(
    request: GatewayRequest,
    question: TurnInput,
    session_id: str | None,
    key: str,
    options: SubmitOptions,
    turn_id: str | None = None,
) -> AsyncTurnHandle:
    """The turn of a question. Without a session it begins one of its own, among the caller's.

    turn_id   of a turn that is new
    """
    request.require_verb(Verb.READ)
    session = session_id or _unnamed_session(request.caller, key)
    request.require_session(check_id("session", session))
    await require_no_client_wait(request, session)
    if is_unnamed_session(session):
        # Many clients read the arguments of a call, never send a result, and never use such a session again.
        bound_waits(options, request.gateway.settings.http_client_tools_s)
    options["request_key"] = own_request_key(request.caller, session, key)
    if question.instructions:
        options["skill_context"] = question.instructions
    request.require_options(
        name for name in options if name not in ("limits", "options")
    )  # these were narrowed, where they had to be
    if turn_id is not None:
        options["turn_id"] = turn_id
    if question.files:
        options["attachments"] = question.files
    brings: SubmitOptions = {**options}
    if question.history:
        brings["history"] = embed_files(newest_within_limits(question.history), question.brought)
    if session_id is None or not question.history:
        handle = await request.client.submit(session, question.text, **brings)
    else:
        handle = await _submit_to_known_session(request, session, question.text, options, brings)
    if session_id is not None and handle.created:
        await cancel_abandoned_calls(request, session, handle.turn_id)
    return handle


async def give_results(request: GatewayRequest, given: ToolResults) -> tuple[AsyncTurnHandle, PartSelector]:
    """The turn that the results are for, with them given; sending them again changes nothing.

    Raises InvalidInput where a call that was requested with them has none: the turn would wait for it.
    """
    request.require_verb(Verb.READ)
    request.require_verb(Verb.STEER)
    handle = await request.own_turn(given.turn_id)
    state, _ = await fold_so_far(handle)
    waiting, calls = {call.id for call in state.waiting}, {full_call_id(given.turn_id, call) for call in given.calls}
    if missing := sorted(waiting - calls):
        raise InvalidInput(given.field, f"the call {missing[0]!r} has no result; send one for each call")
    if (given.text or given.files) and waiting:
        request.require_verb(Verb.SUBMIT)  # input that comes as the turn ends becomes a turn of its own
        hashes = [file.attachment.sha256 for file in given.files]
        content = f"{given.turn_id} {sorted(given.calls)} {given.text}{hashes or ''}"
        digest = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
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
    return handle, await select_part(request.gateway, handle, after_calls=frozenset(calls))


async def _submit_to_known_session(
    request: GatewayRequest, session: str, text: str, options: SubmitOptions, brings: SubmitOptions
) -> AsyncTurnHandle:
    """A session that goes on takes only what is new. What brought its conversation along when it was tried first does
    so again: the same key with other content would be refused."""
    if not await request.client.session(session).history(limit=1):
        return await request.client.submit(session, text, **brings)
    try:
        return await request.client.submit(session, text, **options)
    except SubmitConflict:
        return await request.client.submit(session, text, **brings)


def _unnamed_session(caller: Caller, key: str) -> str:
    prefix = "" if caller.prefixes is None else caller.prefixes[0]
    return unnamed_session(prefix, hashlib.sha256(f"{prefix} {key}".encode()).hexdigest())
