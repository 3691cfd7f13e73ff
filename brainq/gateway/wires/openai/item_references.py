"""`item_reference`: items of earlier responses that a request names by their ids, in their place."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field

from pydantic import JsonValue

from brainq.client.async_handle import AsyncTurnHandle
from brainq.contracts.ids import check_turn_id, split_call_id
from brainq.contracts.message import Message
from brainq.errors import ContentNotKept, InvalidInput
from brainq.gateway.edge.dependencies import Gateway, Principal
from brainq.gateway.rest.event_stream import result_if_ready
from brainq.gateway.wires.openai.part_fold import PART_ENDS, SEPARATOR, PartState, advance
from brainq.gateway.wires.openai.part_reader import select_part

InputItem = dict[str, JsonValue]
MAX_TURNS = 200
"""Of one request: each is looked up."""
LOOKUPS_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class ItemReference:
    """`msg_TURN.N`, the message of a part; `rs_TURN.N`, what was thought there; `fc_CALL`, a call of the client's."""

    field: str
    kind: str
    turn_id: str
    part: int = 1
    call: str = ""


@dataclass(slots=True)
class StoredItems:
    """A turn's messages by part, and its calls by their ids in the turn."""

    texts: dict[int, str] = field(default_factory=dict[int, str])
    calls: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])


async def resolve_references(here: Gateway, by: Principal, given: str | list[InputItem]) -> str | list[InputItem]:
    """The items of a request, those that are named by their ids as they are.

    Raises InvalidInput for an id that is not one of ours, or whose content is no longer kept; TurnNotFound for one of
    another caller's turns.
    """
    if isinstance(given, str):
        return given
    found = {at: _reference(f"input[{at}]", item) for at, item in enumerate(given) if is_reference(item)}
    if not found:
        return given
    turns = sorted({reference.turn_id for reference in found.values() if reference.kind != "rs"})
    if len(turns) > MAX_TURNS:
        raise InvalidInput("input", f"it names items of {len(turns)} responses; send the oldest as they are")
    known: dict[str, StoredItems] = {}
    for begin in range(0, len(turns), LOOKUPS_AT_ONCE):
        some = turns[begin : begin + LOOKUPS_AT_ONCE]
        wanted = [{ref.call for ref in found.values() if ref.turn_id == turn_id and ref.call} for turn_id in some]
        looked = await asyncio.gather(*(_load_items(here, by, *each) for each in zip(some, wanted, strict=True)))
        known |= dict(zip(some, looked, strict=True))
    items: list[InputItem] = []
    for at, item in enumerate(given):
        reference = found.get(at)
        if reference is None:
            items.append(item)
        elif reference.kind != "rs":  # what was thought is kept here, and not part of the text
            items.append(_item(reference, known[reference.turn_id]))
    return items


def is_reference(item: InputItem) -> bool:
    """Whether the item refers to one of an earlier response: its type says so, or it is an id alone."""
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
    raise InvalidInput(f"{where}.id", f"{str(item_id)[:80]!r} is not an item of a response here; send the item itself")


async def _load_items(here: Gateway, by: Principal, turn_id: str, calls: set[str]) -> StoredItems:
    handle = await here.client.handle(turn_id)
    by.require_session(handle.session_id)
    if await handle.is_response_deleted():
        return StoredItems()
    known = StoredItems(texts=await _texts_of_parts(here, handle))
    if not known.texts or calls:
        try:
            messages = await handle.transcript()
        except ContentNotKept:
            return known
        known.calls = {call.id: (call.name, _arguments(call.arguments)) for one in messages for call in one.calls}
        theirs = {tool.name for tool in (await handle.request()).client_tools}
        known.texts = known.texts or texts_by_part(messages, theirs)
    return known


async def _texts_of_parts(here: Gateway, handle: AsyncTurnHandle) -> dict[int, str]:
    """The text of each part that has ended; nothing once the turn's events are gone."""
    wanted, events = await select_part(here, handle), await handle.events_so_far()
    state = PartState(handle.turn_id, in_one_piece=wanted.in_one_piece)
    texts: dict[int, str] = {}
    for event in events:
        result = await result_if_ready(handle) if event.is_final else None
        state, words = advance(state, event, result)
        texts |= {word.part: word.text for word in words if isinstance(word, PART_ENDS)}
    return texts


def texts_by_part(messages: tuple[Message, ...], theirs: set[str]) -> dict[int, str]:
    """The same of a turn's messages: a part ends with a reply that calls a tool of the client's."""
    texts: dict[int, str] = {1: ""}
    part = 1
    for message in messages:
        if message.role != "assistant":
            continue
        texts[part] = SEPARATOR.join(filter(None, (texts[part], message.content)))
        if any(call.name in theirs for call in message.calls):
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
