"""Reads one part of a turn, as a stream or as a whole."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass

from fastapi import Request

from brainq.brain.brains import complete_request
from brainq.client.async_handle import AsyncTurnHandle
from brainq.contracts.event import TurnEvent
from brainq.contracts.turn import TurnResult
from brainq.errors import ResultTimeout
from brainq.gateway.edge.dependencies import Gateway, Principal
from brainq.gateway.edge.limits import StreamSlot
from brainq.gateway.edge.problems import RequestRejected
from brainq.gateway.rest.event_stream import (
    EncodedEvent,
    EventReader,
    EventStream,
    open_events,
    result_if_ready,
    stream_events,
    wait_for_disconnect,
)
from brainq.gateway.wires.openai.part_fold import (
    PART_ENDS,
    PartCompleted,
    PartEvent,
    PartFailed,
    PartState,
    ToolCallsRequested,
    advance,
    part_of_result,
)

PartEnd = ToolCallsRequested | PartCompleted | PartFailed


@dataclass(frozen=True, slots=True)
class PartSelector:
    """Which part: by its number, or behind the one that asked for these calls; and how, see `State.in_one_piece`."""

    part: int = 1
    behind: frozenset[str] = frozenset()
    in_one_piece: bool = False

    def takes(self, word: PartEvent, parked_in: dict[str, int]) -> bool:
        if not self.behind:
            return word.part == self.part
        found = [parked_in[call] for call in self.behind if call in parked_in]
        return bool(found) and word.part == max(found) + 1


async def select_part(
    gateway: Gateway, handle: AsyncTurnHandle, part: int = 1, behind: frozenset[str] = frozenset()
) -> PartSelector:
    """This part of the turn, as the turn's kind of answer is to be given."""
    asked = complete_request(gateway.brains, await handle.request())
    return PartSelector(part, behind, in_one_piece=asked.output_schema is not None)


class PartReader:
    """Folds a turn's events into the words of the part that is wanted."""

    def __init__(self, handle: AsyncTurnHandle, wanted: PartSelector) -> None:
        self._handle = handle
        self._wanted = wanted
        self._state = PartState(handle.turn_id, in_one_piece=wanted.in_one_piece)

    async def words(self, event: TurnEvent) -> list[PartEvent]:
        """What the next event tells of the part."""
        result = await result_if_ready(self._handle) if event.is_final else None
        return self.fold(event, result)

    def fold(self, event: TurnEvent, result: TurnResult | None) -> list[PartEvent]:
        self._state, words = advance(self._state, event, result)
        return [word for word in words if self._wanted.takes(word, dict(self._state.parked_in))]


async def read_part(
    gateway: Gateway, principal: Principal, request: Request, handle: AsyncTurnHandle, wanted: PartSelector
) -> tuple[list[PartEvent], PartEnd]:
    """All words of the part, once it has ended.

    Raises RequestRejected when the gateway stops before that, or its events are gone and the part is unknown.
    """
    with gateway.streams.enter(principal.caller.counted_as) as place:
        words = await _until_over(_collect(handle, wanted), place, request)
    return words, require_end(words)


def require_end(words: Sequence[PartEvent]) -> PartEnd:
    """The last word. Raises RequestRejected where the part has none, and its turn is over."""
    last = words[-1] if words else None
    if isinstance(last, PART_ENDS):
        return last
    raise _events_gone()


async def read_part_so_far(handle: AsyncTurnHandle, wanted: PartSelector) -> list[PartEvent]:
    """The words of the part that there are now."""
    follower = PartReader(handle, wanted)
    events = await handle.events_so_far()
    result = await _result_of(handle) if not events or events[-1].is_final else None
    if not events:
        return await _events_of_result(handle, wanted, result)
    return [word for event in events for word in follower.fold(event, result if event.is_final else None)]


async def stream_part(
    gateway: Gateway,
    principal: Principal,
    request: Request,
    handle: AsyncTurnHandle,
    wanted: PartSelector,
    write: Callable[[PartEvent], bytes],
    farewell: bytes | Callable[[], bytes],
    *,
    is_continued: bool = False,
) -> EventStream:
    """The part as a stream, written word by word. Of a turn whose events are gone it has the whole text as one word,
    which continues nothing: Refused is raised for one that `is_continued`."""
    follower = PartReader(handle, wanted)

    async def written(event: TurnEvent) -> EncodedEvent:
        words = await follower.words(event)
        return EncodedEvent(b"".join(map(write, words)), any(isinstance(word, PART_ENDS) for word in words))

    try:
        found = await stream_events(
            request, gateway, principal, lambda: open_events(handle, 0), write=written, farewell=farewell
        )
    except RequestRejected as refusal:
        if refusal.kind.word != "events-gone" or is_continued:
            raise
        found = None
    if found is not None:
        return found
    words = await _events_of_result(handle, wanted, await _result_of(handle))
    require_end(words)
    return await _stream_of_events(gateway, principal, request, words, write, farewell)


async def _stream_of_events(
    gateway: Gateway,
    principal: Principal,
    request: Request,
    words: list[PartEvent],
    write: Callable[[PartEvent], bytes],
    farewell: bytes | Callable[[], bytes],
) -> EventStream:
    """Words that are all there, as a stream."""

    async def nothing() -> AsyncIterator[TurnEvent]:
        for event in ():
            yield event

    async def reading() -> EventReader | None:
        return EventReader(nothing())

    found = await stream_events(
        request, gateway, principal, reading, opening=b"".join(map(write, words)), farewell=farewell
    )
    assert found is not None
    return found


async def _collect(handle: AsyncTurnHandle, wanted: PartSelector) -> list[PartEvent]:
    follower = PartReader(handle, wanted)
    words: list[PartEvent] = []
    seen = False
    async for event in handle.events():
        seen = True
        words += await follower.words(event)
        if words and isinstance(words[-1], PART_ENDS):
            return words
    return words if seen else await _events_of_result(handle, wanted, await _result_of(handle))


async def _until_over(work: Awaitable[list[PartEvent]], place: StreamSlot, request: Request) -> list[PartEvent]:
    task = asyncio.ensure_future(work)
    over = [asyncio.ensure_future(place.stopping.wait()), asyncio.ensure_future(wait_for_disconnect(request.receive))]
    try:
        await asyncio.wait({task, *over}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return await task
        raise RequestRejected("stopping", "the turn goes on; ask again, under the same Idempotency-Key")
    finally:
        for each in (task, *over):
            each.cancel()


async def _result_of(handle: AsyncTurnHandle) -> TurnResult | None:
    try:
        return await handle.result(timeout_s=0)
    except ResultTimeout:
        return None


async def _events_of_result(
    handle: AsyncTurnHandle, wanted: PartSelector, result: TurnResult | None
) -> list[PartEvent]:
    """Of a turn whose events are gone only the end can be given, and it is the end of its last part.

    Raises RequestRejected for any other part, and where nobody can tell any more which is the last.
    """
    if result is None:
        return []
    theirs = {tool.name for tool in (await handle.request()).client_tools}
    asked = [call for call in await handle.calls() if call.tool in theirs] if theirs else []
    last = {call.call_id for call in asked if call.step == asked[-1].step}
    if wanted.part > 1 or (last and not wanted.behind & last):
        raise _events_gone()
    return list(part_of_result(handle.turn_id, wanted.part, result))


def _events_gone() -> RequestRejected:
    return RequestRejected("events-gone", "the turn has ended, and its events are no longer kept")
