"""Items of responses: the earlier items that a request refers to by id, and the list of a response's input items."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import JsonValue

from brainq.client.async_handle import AsyncTurnHandle
from brainq.contracts.ids import check_turn_id, full_call_id, split_call_id
from brainq.contracts.message import Attachment, Message
from brainq.contracts.turn import CONTENT_NOT_STORED, TurnRequest
from brainq.errors import AttachmentNotFound, ContentNotKept, InvalidInput, NotFound
from brainq.gateway.edge.access import RequestDep
from brainq.gateway.edge.problems import RequestRejected
from brainq.gateway.edge.request import Gateway, GatewayRequest
from brainq.gateway.wires.openai.earlier_responses import ResponseId, find_part, look_up_all
from brainq.gateway.wires.openai.errors import answer_responses
from brainq.gateway.wires.openai.part_fold import SEPARATOR, PartEnded
from brainq.gateway.wires.openai.part_reader import fold_so_far, select_part

InputItem = dict[str, JsonValue]
MAX_TURNS = 200
"""The maximum number of turns that a request refers to. Each is looked up."""
router = APIRouter(tags=["openai"])
Item = dict[str, Any]
WITH_IMAGES = "message.input_image.image_url"
"""The value of `include` that adds the bytes of images."""


@dataclass(frozen=True, slots=True)
class ItemReference:
    """A reference to an item: `msg_TURN.N`, a part's message; `rs_TURN.N`, its reasoning; or `fc_CALL`, a call."""

    field: str
    kind: str
    turn_id: str
    part: int = 1
    call: str = ""


@dataclass(slots=True)
class StoredItems:
    """A turn's messages by part, and its calls by id."""

    texts: dict[int, str] = field(default_factory=dict[int, str])
    calls: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])


async def resolve_references(request: GatewayRequest, given: str | list[InputItem]) -> str | list[InputItem]:
    """Return the items of a request with each reference replaced by the item.

    Raises InvalidInput for an id that is not one of ours or whose content is no longer kept, and TurnNotFound for an
    item of another caller's turn.
    """
    if isinstance(given, str):
        return given
    found = {at: _reference(f"input[{at}]", item) for at, item in enumerate(given) if is_reference(item)}
    if not found:
        return given
    turns = sorted({reference.turn_id for reference in found.values() if reference.kind != "rs"})
    if len(turns) > MAX_TURNS:
        raise InvalidInput(
            "input",
            f"it refers to items of {len(turns)} responses; send the content of the oldest items instead of their ids",
        )

    async def load(turn_id: str) -> StoredItems:
        calls = {ref.call for ref in found.values() if ref.turn_id == turn_id and ref.call}
        return await _load_items(request, turn_id, calls)

    known = dict(zip(turns, await look_up_all(load, turns), strict=True))
    items: list[InputItem] = []
    for at, item in enumerate(given):
        reference = found.get(at)
        if reference is None:
            items.append(item)
        elif reference.kind != "rs":  # reasoning is kept here and is not part of the input
            items.append(_item(reference, known[reference.turn_id]))
    return items


def is_reference(item: InputItem) -> bool:
    """Return whether the item refers to an earlier one: it has that type, or consists of an id alone."""
    return item.get("type") == "item_reference" or (item.get("type") is None and set(item) <= {"type", "id"})


def _reference(where: str, item: InputItem) -> ItemReference:
    item_id = item.get("id")
    kind, _, rest = item_id.partition("_") if isinstance(item_id, str) else ("", "", "")
    try:
        if kind == "fc":
            turn_id, call = split_call_id(rest)
            return ItemReference(where, kind, check_turn_id("id", turn_id), call=call)
        turn_id, dot, part = rest.partition(".")
        if kind in ("msg", "rs") and dot and part.isdecimal() and 0 < int(part[:9]) < 10_000:
            return ItemReference(where, kind, check_turn_id("id", turn_id), part=int(part))
    except InvalidInput:
        pass
    raise InvalidInput(
        f"{where}.id", f"{str(item_id)[:80]!r} is not the id of an item of a response; send the item itself"
    )


async def _load_items(request: GatewayRequest, turn_id: str, calls: set[str]) -> StoredItems:
    handle = await request.own_turn(turn_id)
    if await handle.is_response_deleted():
        return StoredItems()
    known = StoredItems(texts=await _texts_of_parts(request.gateway, handle))
    if not known.texts or calls:
        try:
            messages = await handle.transcript()
        except ContentNotKept:
            return known
        known.calls = {call.id: (call.name, _arguments(call.arguments)) for one in messages for call in one.calls}
        client_tools = {tool.name for tool in (await handle.request()).client_tools}
        known.texts = known.texts or texts_by_part(messages, client_tools)
    return known


async def _texts_of_parts(gateway: Gateway, handle: AsyncTurnHandle) -> dict[int, str]:
    """Return the text of each part that has ended. Returns nothing if the turn's events have expired."""
    selector = await select_part(gateway, handle)
    _, part_events = await fold_so_far(handle, in_one_piece=selector.in_one_piece)
    return {event.part: event.text for event in part_events if isinstance(event, PartEnded)}


def texts_by_part(messages: tuple[Message, ...], client_tools: set[str]) -> dict[int, str]:
    """Return the text of each part, from a turn's messages: a part ends with a reply that calls a client's tool."""
    texts: dict[int, str] = {1: ""}
    part = 1
    for message in messages:
        if message.role != "assistant":
            continue
        texts[part] = SEPARATOR.join(filter(None, (texts[part], message.content)))
        if any(call.name in client_tools for call in message.calls):
            part += 1
            texts[part] = ""
    return texts


def _item(reference: ItemReference, known: StoredItems) -> InputItem:
    if reference.kind == "fc":
        if reference.call not in known.calls:
            raise _not_kept(reference)
        name, arguments = known.calls[reference.call]
        call_id = f"{reference.turn_id}-{reference.call}"
        return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}
    if reference.part not in known.texts:
        raise _not_kept(reference)
    return {"type": "message", "role": "assistant", "content": known.texts[reference.part]}


def _arguments(given: object) -> str:
    return given if isinstance(given, str) else json.dumps(given, separators=(",", ":"))


def _not_kept(reference: ItemReference) -> InvalidInput:
    return InvalidInput(
        f"{reference.field}.id", "this item does not exist, or its content is no longer kept; send the item itself"
    )


@dataclass(frozen=True, slots=True)
class InputEntry:
    """A message of a part's input, with the id of its item. `call_id` is set for a result, unique over all turns."""

    id: str
    message: Message
    call_id: str = ""


@router.get(
    "/v1/responses/{response_id}/input_items",
    response_model=None,
    responses=answer_responses("A page of the items, newest first unless `order` is `asc`.", 410),
)
async def list_input_items(
    response_id: ResponseId,
    request: RequestDep,
    after: Annotated[str | None, Query(max_length=200, description="The id of the last item seen.")] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    order: Literal["asc", "desc"] = "desc",
    include: Annotated[list[str] | None, Query(description=f"`{WITH_IMAGES}` adds images.")] = None,
    in_brackets: Annotated[
        list[str] | None, Query(alias="include[]", description="The spelling of `include` in official clients.")
    ] = None,
) -> dict[str, Any]:
    """List the input of a response: the conversation in its request and the user's message, or, after calls of the
    client's tools, their results."""
    handle, part = await find_part(request, response_id)
    items = [item for entry in await _load_entries(handle, part) for item in render_entry(entry)]
    page, has_more = page_of(items, after, limit, is_newest_first=order == "desc")
    if WITH_IMAGES in (*(include or ()), *(in_brackets or ())):
        page = [await _with_images(handle, item) for item in page]
    return {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
        "has_more": has_more,
    }


def entries_of_request(request: TurnRequest) -> list[InputEntry]:
    """Return the input of a turn's first part: the conversation in the request, and the user's message."""
    question = Message(role="user", content=request.user_message, attachments=request.attachments)
    return [
        InputEntry(f"{request.turn_id}.1.{number}", message, message.call_id)
        for number, message in enumerate([*request.history, question])
    ]


def entries_of_part(turn_id: str, messages: Sequence[Message], requested: set[str], part: int) -> list[InputEntry]:
    """Return the input of a later part: the results of the calls that the previous part requested, and user messages.

    messages    the messages of the turn
    requested   the ids of those calls in the turn
    """
    entries: list[InputEntry] = []
    is_behind = False
    for message in messages:
        if message.role == "assistant":
            if is_behind and entries:
                break
            is_behind = any(call.id in requested for call in message.calls)
        elif is_behind and (message.call_id in requested or _is_of_user(message)):
            call_id = full_call_id(turn_id, message.call_id) if message.role == "tool" else ""
            entries.append(InputEntry(f"{turn_id}.{part}.{len(entries)}", message, call_id))
    return entries


def render_entry(entry: InputEntry) -> list[Item]:
    """Return the items of a message. An assistant's calls are separate items."""
    message = entry.message
    match message.role:
        case "tool":
            output: Any = message.content
            if message.attachments:
                output = [_text(message.content), *map(_file, message.attachments)]
            return [
                {
                    "id": f"fco_{entry.id}",
                    "type": "function_call_output",
                    "call_id": entry.call_id,
                    "output": output,
                    "status": "incomplete" if message.is_error else "completed",
                }
            ]
        case "assistant":
            return _reply_items(entry)
        case _:
            texts = [_text(message.content)] if message.content or not message.attachments else []
            return [_message(entry, "user", [*texts, *map(_file, message.attachments)])]


def page_of(items: Sequence[Item], after: str | None, limit: int, *, is_newest_first: bool) -> tuple[list[Item], bool]:
    """Return the page after the item `after`, and whether more follow. Raises InvalidInput for an unknown id."""
    ordered = list(reversed(items)) if is_newest_first else list(items)
    begin = 0
    if after is not None:
        known = [item["id"] for item in ordered]
        if after not in known:
            raise InvalidInput("after", "the response has no such input item; send a page's last_id")
        begin = known.index(after) + 1
    return ordered[begin : begin + limit], len(ordered) > begin + limit


async def _load_entries(handle: AsyncTurnHandle, part: int) -> list[InputEntry]:
    if part == 1:
        request = await handle.request()
        if request.user_message == CONTENT_NOT_STORED:
            raise ContentNotKept(
                f"the content of turn {handle.turn_id!r} is not kept: it has ended, and its brain keeps content "
                "out of SQL (redact_logs)"
            )
        return entries_of_request(request)
    fold, part_events = await fold_so_far(handle)
    if not part_events and await handle.snapshot() is None:
        raise RequestRejected("events-gone", "its turn has ended, and its events are gone")
    requested = {call for call, parked_in in fold.parked_in.items() if parked_in == part - 1}
    if requested <= {call.id for call in fold.waiting}:
        raise NotFound("the turn has no such part, at least not yet")
    in_turn = {split_call_id(call)[1] for call in requested}
    return entries_of_part(handle.turn_id, await handle.transcript(), in_turn, part)


async def _with_images(handle: AsyncTurnHandle, item: Item) -> Item:
    parts = item.get("content") or item.get("output")
    if isinstance(parts, list):
        for part in _images(parts):
            with suppress(AttachmentNotFound):  # The file may have been pruned.
                found = await handle.file(part["file_id"])
                part["image_url"] = f"data:{found.media_type};base64,{base64.b64encode(found.data).decode('ascii')}"
    return item


def _images(parts: Iterable[Any]) -> Iterable[dict[str, Any]]:
    return (part for part in parts if part["type"] == "input_image")


def _reply_items(entry: InputEntry) -> list[Item]:
    message, items = entry.message, list[Item]()
    if message.content or not message.calls:
        text = {"type": "output_text", "text": message.content, "annotations": [], "logprobs": []}
        items.append(_message(entry, "assistant", [text]))
    for number, call in enumerate(message.calls):
        items.append(
            {
                "id": f"fc_{entry.id}.{number}",
                "type": "function_call",
                "call_id": call.id,
                "name": call.name,
                "arguments": _arguments(call.arguments),
                "status": "completed",
            }
        )
    return items


def _message(entry: InputEntry, role: str, content: list[Item]) -> Item:
    return {"id": f"msg_{entry.id}", "type": "message", "role": role, "status": "completed", "content": content}


def _is_of_user(message: Message) -> bool:
    """Return whether this is the user's own message rather than a note of the runtime."""
    return message.role == "user" and not (message.extra or {}).get("note")


def _text(text: str) -> Item:
    return {"type": "input_text", "text": text}


def _file(held: Attachment) -> Item:
    if held.is_image:
        return {"type": "input_image", "detail": "auto", "file_id": held.sha256, "image_url": None}
    return {"type": "input_file", "file_id": held.sha256, "filename": held.name or None}
