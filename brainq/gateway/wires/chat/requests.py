"""Requests of chat clients: files, new messages, and answers to calls that wait. All of them are idempotent.

A web address in place of a file's bytes is rejected. brainq fetches no address from a request, because its network may
reach hosts that the caller cannot.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from brainq.app.access import Verb, own_request_key
from brainq.client.async_handle import AsyncTurnHandle
from brainq.client.options import SubmitOptions
from brainq.contracts.conversation import newest_within_limits
from brainq.contracts.event import EventKind
from brainq.contracts.file import File
from brainq.contracts.ids import attended_turn_id, parse_call_id, split_call_id
from brainq.contracts.message import Message
from brainq.contracts.status import Awaits
from brainq.errors import InvalidInput, NotFound, ResultRefused, SessionBusy, SubmitConflict
from brainq.gateway.edge.request import GatewayRequest
from brainq.gateway.rest.turn_control import decide
from brainq.gateway.wires.chat.stream import StreamPosition, position_of_reply
from brainq.runtime.observe.tasks import start_task

NO_FILE_IDS = "file ids are not supported; send the bytes, as base64 or as a data: URL"
ABANDONED = "the client sent a new message without the results of its calls"
ABANDON_AFTER_S = 60.0
"""The seconds for which a turn that waits for its client may delay a newer turn. Its client may still be connected."""
DECIDE_FIRST = "the live turn waits for an approval; decide on it or cancel the turn, then send the message again"
_watched: dict[str, asyncio.Task[None]] = {}


def decode_file(field: str, data: object, media_type: object = "", name: object = "") -> File:
    """Decode the file of a request. Raises InvalidInput that names `field`."""
    kind = media_type if isinstance(media_type, str) else ""
    return File.from_base64(field, data, media_type=kind, name=name if isinstance(name, str) else "")


def decode_openai_file(field: str, part: Mapping[str, Any]) -> File | None:
    """Return the file in a part of a user's message on either of OpenAI's wires, or None for another type of part."""
    match part.get("type"):
        case "image_url" | "input_image":
            held = part.get("image_url")
            if held is None and part.get("file_id") is not None:
                raise InvalidInput(f"{field}.file_id", NO_FILE_IDS)
            url = cast("Mapping[str, Any]", held).get("url") if isinstance(held, Mapping) else held
            return decode_file(f"{field}.image_url", url)
        case "file" | "input_file" as kind:
            inner = part.get("file") if kind == "file" else part
            fields = cast("Mapping[str, Any]", inner) if isinstance(inner, Mapping) else {}
            for name in ("file_id", "file_url"):
                if fields.get("file_data") is None and fields.get(name) is not None:
                    raise InvalidInput(f"{field}.{name}", NO_FILE_IDS)
            return decode_file(f"{field}.file_data", fields.get("file_data"), name=fields.get("filename"))
        case _:
            return None


def embed_files(messages: Sequence[Message], files: Mapping[str, File]) -> list[Message | Mapping[str, Any]]:
    """Return the messages in the form that `submit` accepts, with each file reference replaced by the file."""
    return [
        {
            "role": message.role,
            "content": message.content,
            "call_id": message.call_id,
            "name": message.name,
            "attachments": [files[one.sha256] for one in message.attachments],
        }
        if message.attachments
        else message
        for message in messages
    ]


def read_history(history: Sequence[Mapping[str, Any]]) -> list[Message | Mapping[str, Any]]:
    """Return the newest of these messages, as many as a session may begin with. Their `attachments` are Files."""
    files: dict[str, File] = {}
    messages: list[Message] = []
    for entry in history:
        sent: Sequence[File] = entry.get("attachments", ())
        files.update((file.attachment.sha256, file) for file in sent)
        references = tuple(file.attachment for file in sent)
        messages.append(Message.model_validate({**entry, "attachments": references}))
    return embed_files(newest_within_limits(messages), files)


def bound_waits(options: SubmitOptions, max_wait_s: float) -> None:
    """Limit the seconds for which calls of the client's tools wait."""
    if "client_tools" in options:
        tools = cast("Sequence[dict[str, Any]]", options["client_tools"])
        options["client_tools"] = [{**tool, "timeout_s": max_wait_s} for tool in tools]


async def require_no_client_wait(request: GatewayRequest, session_id: str) -> None:
    """Raise SessionBusy if the live turn waits for its client and this caller may not cancel it."""
    if Verb.STEER in request.caller.verbs:
        return
    live = await request.client.session(session_id).live()
    if live and await _waits_for_client(await request.client.handle(live)):
        raise SessionBusy(session_id, live)


async def cancel_abandoned_calls(request: GatewayRequest, session_id: str, turn_id: str) -> None:
    """Cancel the session's live turn if it waits for its client, which has since begun `turn_id`.

    Without this it could block the session for a day.
    """
    live = await request.client.session(session_id).live()
    if not live or live == turn_id or Verb.STEER not in request.caller.verbs:
        return
    handle = await request.client.handle(live)
    if await _waits_for_client(handle):
        await handle.cancel(ABANDONED)
    elif live not in _watched:
        _watched[live] = start_task("brainq-abandoned", _cancel_when_abandoned(handle))
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


class CamelBody(BaseModel):
    """A base class of bodies with names in camel case. Unknown fields are ignored."""

    model_config = ConfigDict(strict=True, frozen=True, alias_generator=to_camel, validate_by_name=False)


@dataclass(frozen=True, slots=True)
class Question:
    """A message from the user. `message_id`, text and files together identify it in the session."""

    text: str
    message_id: str
    files: tuple[File, ...] = ()


@dataclass(frozen=True, slots=True)
class ApprovalDecision:
    """A person's decision about a call. `arguments` replace the model's unless they are None."""

    call_id: str
    is_approved: bool
    reason: str = ""
    arguments: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ClientResult:
    """The result of a call of the client's own tool, or the `error` that prevented one."""

    call_id: str
    result: Any = None
    error: str = ""


CallAnswer = ApprovalDecision | ClientResult


async def submit_question(
    request: GatewayRequest,
    session_id: str,
    question: Question,
    options: SubmitOptions,
    history: Sequence[dict[str, Any]] = (),
) -> AsyncTurnHandle:
    """Return the turn of a question: a new one, or the one that an earlier request with the same question began.

    history   the messages before the question, with which a new session begins

    Raises SessionBusy if the live turn waits for an approval, because the new turn and its reader would wait for that.
    Raises what `AsyncClient.submit` raises.
    """
    request.require_verb(Verb.READ)
    key = own_request_key(request.caller, session_id, _request_key(session_id, question, options.get("brain")))
    found = await _find_turn(request, session_id, key)
    if found is not None:
        return found
    await require_no_client_wait(request, session_id)
    await _require_no_pending_approval(request, session_id)
    if history and not await request.client.session(session_id).history(1):
        options = {**options, "history": read_history(history)}
    if options.get("client_tools"):
        # A closed page never answers, and the model must not continue without a reader.
        options = {**options, "turn_id": attended_turn_id()}
        bound_waits(options, request.gateway.settings.http_client_tools_s)
    if question.files:
        options = {**options, "attachments": question.files}
    try:
        handle = await request.client.submit(session_id, question.text, **{**options, "request_key": key})
    except SubmitConflict:  # the question was sent twice at the same time with different options
        found = await _find_turn(request, session_id, key)
        if found is None:
            raise
        return found
    await cancel_abandoned_calls(request, session_id, handle.turn_id)
    return handle


async def _require_no_pending_approval(request: GatewayRequest, session_id: str) -> None:
    live = await request.client.session(session_id).live()
    if live is not None:
        approvals = await (await request.client.handle(live)).approvals()
        if any(approval.state == "pending" for approval in approvals):
            raise SessionBusy(session_id, live, DECIDE_FIRST)


async def apply_answers(
    request: GatewayRequest, session_id: str, answers: Sequence[CallAnswer]
) -> tuple[AsyncTurnHandle, StreamPosition]:
    """Apply decisions and results, each once. Returns the turn and the position up to which the client has read it.

    Raises InvalidInput for calls of several turns, NotFound for calls of another session, and ApprovalDecided.
    """
    request.require_verb(Verb.READ)
    for one in answers:
        request.require_verb(Verb.DECIDE if isinstance(one, ApprovalDecision) else Verb.STEER)
    turn_ids = {split_call_id(one.call_id)[0] for one in answers}
    if len(turn_ids) != 1:
        raise InvalidInput("messages", "the answers are for calls of several turns; send those of one turn at a time")
    handle = await request.own_turn(turn_ids.pop())
    if handle.session_id != session_id:
        raise NotFound("the turn belongs to another session")
    steps = [parse_call_id(split_call_id(one.call_id)[1])[0] for one in answers]
    behind = await position_of_reply(handle, max(steps))
    for one in answers:
        if isinstance(one, ApprovalDecision):
            approves, reason, arguments = one.is_approved, one.reason, one.arguments
            await decide(request, one.call_id, approves=approves, reason=reason, arguments=arguments)
        else:
            await _give_result(handle, one)
    return handle, behind


async def _give_result(handle: AsyncTurnHandle, answer: ClientResult) -> None:
    try:
        if answer.error:
            await handle.give_error(answer.call_id, answer.error)
        else:
            await handle.give_result(answer.call_id, answer.result)
    except ResultRefused:
        pass  # the call already has a result, which the stream shows next


def _request_key(session_id: str, question: Question, brain: str | None) -> str:
    hashes = [file.attachment.sha256 for file in question.files]
    identity = "\n".join((session_id, brain or "", question.message_id, question.text, *hashes))
    return f"chat-{hashlib.sha256(identity.encode('utf-8', 'surrogatepass')).hexdigest()[:40]}"


async def _find_turn(request: GatewayRequest, session_id: str, key: str) -> AsyncTurnHandle | None:
    try:
        found = await request.client.find(key)
    except NotFound:
        return None
    return found if found.session_id == session_id else None
