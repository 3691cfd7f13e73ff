"""Earlier responses that a request names, and the turns that follow them in their session or in a branch of it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, TypeVar

from fastapi import Path

from brainq.app.access import Caller, Verb, own_request_key
from brainq.client.async_handle import AsyncTurnHandle
from brainq.contracts.file import File
from brainq.contracts.ids import unnamed_session
from brainq.contracts.message import Message
from brainq.errors import AttachmentNotFound, ContentNotKept, InvalidInput, NotFound, TurnNotFound
from brainq.gateway.edge.request import GatewayRequest
from brainq.gateway.rest.event_stream import result_if_ready
from brainq.gateway.wires.openai.messages import TurnInput
from brainq.gateway.wires.openai.response_fold import RESPONSE_ID_PREFIX, split_response_id

ResponseId = Annotated[str, Path(pattern=r"^resp_[A-Za-z0-9][A-Za-z0-9_-]{2,63}(\.[0-9]{1,4})?$")]
T = TypeVar("T")
R = TypeVar("R")
FIELD = "previous_response_id"
MAX_TURNS = 100
"""The number of newest turns that a branch takes over. Each is looked up."""
LOOKUPS_AT_ONCE = 8
_NEWEST = 20
"""The number of newest turns among which to find the newest one that is not a compaction or a review."""


async def find_part(request: GatewayRequest, given: str) -> tuple[AsyncTurnHandle, int]:
    """Return the turn and the part of one of the caller's own responses.

    Raises NotFound for any other response, and for a deleted one.
    """
    split = split_response_id(given)
    if split is None:
        raise NotFound(f"{given[:100]!r} is not the id of a response, which begins with {RESPONSE_ID_PREFIX}")
    handle = await request.own_turn(split[0])
    await require_not_deleted(handle)
    return handle, split[1]


async def require_not_deleted(handle: AsyncTurnHandle) -> None:
    """Raise NotFound if the turn's response was deleted."""
    if await handle.is_response_deleted():
        raise NotFound("the response was deleted")


async def follow_response(
    request: GatewayRequest, previous: AsyncTurnHandle, question: TurnInput, key: str
) -> tuple[str, TurnInput]:
    """Return the session in which the question follows the response, and the question with the history it needs there.

    key   the request's key; a repeated request gets the same branch

    Raises InvalidInput if the session has newer turns and the response has not ended or its content is not kept.
    """
    request.require_verb(Verb.READ)
    if await _is_newest(request, previous) or await _is_known(request, previous, key):
        return previous.session_id, question
    if await result_if_ready(previous) is None:
        raise InvalidInput(
            FIELD,
            "the response has not ended, and its session has newer turns; wait for its end, or send the conversation "
            "as input",
        )
    try:
        messages, files = await _conversation(request, previous)
    except ContentNotKept:
        raise InvalidInput(
            FIELD,
            "the session has newer turns, and the conversation up to this response is not kept; send the conversation "
            "as input",
        ) from None
    return _branch_session(request.caller, previous, key), replace(
        question, history=(*messages, *question.history), brought={**files, **question.brought}
    )


async def _is_newest(request: GatewayRequest, previous: AsyncTurnHandle) -> bool:
    turns = await request.client.session(previous.session_id).history(limit=_NEWEST)
    newest = next((turn.turn_id for turn in reversed(turns) if turn.kind == "chat"), previous.turn_id)
    return newest == previous.turn_id


async def _is_known(request: GatewayRequest, previous: AsyncTurnHandle, key: str) -> bool:
    """Return whether the session's newer turn was begun by an earlier try of this same request."""
    own = own_request_key(request.caller, previous.session_id, key)
    try:
        found = await request.client.find(own)
    except (TurnNotFound, InvalidInput):
        return False
    return found.session_id == previous.session_id and (await found.request()).request_key == own


async def _conversation(request: GatewayRequest, previous: AsyncTurnHandle) -> tuple[list[Message], dict[str, File]]:
    """Return the session's conversation up to the response, and the files that still exist."""
    session = request.client.session(previous.session_id)
    before = await session.history(limit=MAX_TURNS - 1, after=previous.turn_id)
    handles = [await request.client.handle(turn.turn_id) for turn in before if turn.kind == "chat"]
    handles.append(previous)
    messages: list[Message] = []
    files: dict[str, File] = {}
    if len(before) < MAX_TURNS - 1:
        opened = await handles[0].request()
        messages = [Message(role="assistant", content=opened.greeting)] if opened.greeting else list(opened.history)
        files = await _load_files(handles[0], messages)
    for turn_messages, turn_files in await look_up_all(_load_turn, handles):
        messages += turn_messages
        files |= turn_files
    return [found for message in messages if (found := _as_history(message, files)) is not None], files


async def look_up_all(look_up: Callable[[T], Awaitable[R]], items: Sequence[T]) -> list[R]:
    """Return the result of each lookup, of which LOOKUPS_AT_ONCE run concurrently."""
    found: list[R] = []
    for begin in range(0, len(items), LOOKUPS_AT_ONCE):
        found += await asyncio.gather(*map(look_up, items[begin : begin + LOOKUPS_AT_ONCE]))
    return found


async def _load_turn(handle: AsyncTurnHandle) -> tuple[tuple[Message, ...], dict[str, File]]:
    messages = await handle.transcript()
    return messages, await _load_files(handle, messages)


async def _load_files(handle: AsyncTurnHandle, messages: Sequence[Message]) -> dict[str, File]:
    """Return the files that still exist, by hash."""
    files: dict[str, File] = {}
    for sha256 in {one.sha256 for message in messages for one in message.attachments}:
        with suppress(AttachmentNotFound):
            files[sha256] = await handle.file(sha256)
    return files


def _as_history(message: Message, files: Mapping[str, File]) -> Message | None:
    """Return the message as history of a submit, or None for a note of the runtime or an empty message."""
    kept = tuple(one for one in message.attachments if one.sha256 in files)
    is_empty = not (message.content.strip() or message.calls or kept)
    if (message.extra or {}).get("note") or (message.role != "tool" and is_empty):
        return None
    plain = {"turn": "", "step": 0, "extra": None, "reasoning": (), "attachments": kept}
    return message.model_copy(update=plain)


def _branch_session(caller: Caller, previous: AsyncTurnHandle, key: str) -> str:
    """Return the id of a branch, which belongs to the tenant of the session that it branches from."""
    prefixes = caller.prefixes or ("",)
    prefix = next(one for one in prefixes if previous.session_id.startswith(one))
    digest = hashlib.sha256(f"{previous.session_id} {previous.turn_id} {key}".encode())
    return unnamed_session(prefix, digest.hexdigest())
