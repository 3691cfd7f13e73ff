"""What a message does: it begins a task, decides what a task asks, or goes into a task that runs."""

from __future__ import annotations

import hashlib
from typing import Any

from a2a.types.a2a_pb2 import Message, SendMessageRequest
from a2a.utils.errors import PushNotificationNotSupportedError, UnsupportedOperationError

from brainq.access import Caller, Verb, own_request_key
from brainq.client.async_handle import AsyncTurnHandle
from brainq.contracts.ids import check_id, split_call_id
from brainq.errors import InvalidInput, ResultRefused, Unreachable
from brainq.http.a2a.rpc import as_json
from brainq.http.a2a.said import CallResult, Decision, Said, files_of, said_in, words_of
from brainq.http.a2a.tasks import task_now
from brainq.http.approvals import decider
from brainq.http.gateway import Asker, Gateway


async def send(here: Gateway, by: Asker, brain: str, request: SendMessageRequest) -> AsyncTurnHandle:
    """The turn of `brain` that the message began, or the one it went to. The same message again does nothing more.

    Raises A2AError, BrainqError, and Refused where the caller lacks a verb.
    """
    if request.configuration.HasField("task_push_notification_config"):
        raise PushNotificationNotSupportedError("there are none; follow the task by SubscribeToTask")
    if request.message.task_id:
        return await _to_task(here, by, request.message)
    return await _begin(here, by, brain, request)


async def _begin(here: Gateway, by: Asker, brain: str, request: SendMessageRequest) -> AsyncTurnHandle:
    by.require_verb(Verb.SUBMIT)
    message = request.message
    context_id = message.context_id or own_context(by.caller, message.message_id)
    check_id("message.contextId", context_id)
    by.require(context_id)
    words = words_of(message)
    key = own_request_key(by.caller, context_id, hashed(context_id, message.message_id))
    options: dict[str, Any] = {"request_key": key, "brain": brain, "attachments": files_of(message)}
    if request.HasField("metadata"):
        options["metadata"] = as_json(request.metadata)
    try:
        return await here.client.submit(context_id, words, **options)
    except Unreachable as away:
        raise Unreachable(str(away)) from away  # the message's own id is what makes it the same again


async def _to_task(here: Gateway, by: Asker, message: Message) -> AsyncTurnHandle:
    handle = await here.client.handle(message.task_id)
    by.require(handle.session_id)
    if message.context_id not in ("", handle.session_id):
        raise InvalidInput("message.contextId", "the task is of another context; leave it out")
    said = said_in(message)
    _check(by, handle, said)
    if said.says and (await task_now(handle)).is_over:
        raise UnsupportedOperationError("the task has ended; send the message without its taskId")
    for given in said.answers:
        if isinstance(given, Decision):
            await _decide(here, by, given)
        else:
            await _give(handle, given)
    if said.says:
        await handle.steer(
            said.text.strip() and said.text,
            client_message_id=hashed(handle.turn_id, message.message_id),
            attachments=said.files,
        )
    return handle


def _check(by: Asker, handle: AsyncTurnHandle, said: Said) -> None:
    """Before anything is done."""
    for given in said.answers:
        by.require_verb(Verb.DECIDE if isinstance(given, Decision) else Verb.STEER)
        if split_call_id(given.call)[0] != handle.turn_id:
            raise InvalidInput("message.parts.data.call", "it is a call of another task")
    if said.says:
        by.require_verb(Verb.STEER)
        by.require_verb(Verb.SUBMIT)  # input that comes as the task ends becomes a task of its own
    elif not said.answers:
        raise InvalidInput(
            "message.parts", "they say nothing; send a text, or an answer to what the task asks"
        )


async def _give(handle: AsyncTurnHandle, given: CallResult) -> None:
    try:
        if given.error is not None:
            await handle.give_error(given.call, given.error)
        else:
            await handle.give_result(given.call, given.result)
    except ResultRefused as refusal:
        if not refusal.was_given:
            raise


async def _decide(here: Gateway, by: Asker, decision: Decision) -> None:
    who = decider(by, "")
    if decision.decision == "deny":
        await here.client.deny(decision.call, decision.reason, by=who)
    elif decision.arguments is not None:
        await here.client.edit(decision.call, decision.arguments, by=who, args_hash=decision.args_hash)
    else:
        await here.client.approve(decision.call, by=who, args_hash=decision.args_hash)


def own_context(caller: Caller, message_id: str) -> str:
    """The context of a message that names none: the caller's own, and the same for the same message."""
    prefix = (caller.prefixes or ("",))[0]
    return f"{prefix}{hashed(caller.counted_as, message_id)}"


def hashed(scope: str, message_id: str) -> str:
    """Message ids are any text; ids here are not."""
    return f"a2a-{hashlib.sha256(f'{scope} {message_id}'.encode()).hexdigest()[:40]}"
