"""A turn's part as its reader wants it: as a stream, or as the whole."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass

from fastapi import Request

from brainq.brains import completed
from brainq.client.async_handle import AsyncTurnHandle
from brainq.contracts.event import TurnEvent
from brainq.contracts.turn import TurnResult
from brainq.errors import ResultTimeout
from brainq.http.event_stream import EventStream, Reading, Written, begin, stream
from brainq.http.gateway import Asker, Gateway
from brainq.http.openai.parts import Answered, Asked, Broke, Last, State, Word, advance, replayed
from brainq.http.problems import Refused
from brainq.http.streams import Place
from brainq.http.waiting import known_result, until_gone

Ending = Asked | Answered | Broke


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which part: by its number, or behind the one that asked for these calls; and how, see `State.in_one_piece`."""

    part: int = 1
    behind: frozenset[str] = frozenset()
    in_one_piece: bool = False

    def takes(self, word: Word, parked_in: dict[str, int]) -> bool:
        if not self.behind:
            return word.part == self.part
        found = [parked_in[call] for call in self.behind if call in parked_in]
        return bool(found) and word.part == max(found) + 1


async def wanted_of(
    here: Gateway, handle: AsyncTurnHandle, part: int = 1, behind: frozenset[str] = frozenset()
) -> Wanted:
    """This part of the turn, as the turn's kind of answer is to be told."""
    asked = completed(here.brains, await handle.request())
    return Wanted(part, behind, in_one_piece=asked.output_schema is not None)


class Follower:
    """Folds a turn's events into the words of the part that is wanted."""

    def __init__(self, handle: AsyncTurnHandle, wanted: Wanted) -> None:
        self._handle = handle
        self._wanted = wanted
        self._state = State(handle.turn_id, in_one_piece=wanted.in_one_piece)

    async def words(self, event: TurnEvent) -> list[Word]:
        """What the next event tells of the part."""
        result = await known_result(self._handle) if event.is_final else None
        return self.fold(event, result)

    def fold(self, event: TurnEvent, result: TurnResult | None) -> list[Word]:
        self._state, words = advance(self._state, event, result)
        return [word for word in words if self._wanted.takes(word, dict(self._state.parked_in))]


async def whole(
    here: Gateway, by: Asker, request: Request, handle: AsyncTurnHandle, wanted: Wanted
) -> tuple[list[Word], Ending]:
    """All words of the part, once it has ended.

    Raises Refused when the gateway stops before, or its events are gone and nobody can tell that part from others.
    """
    with here.streams.enter(by.caller.counted_as) as place:
        words = await _until_over(_collected(handle, wanted), place, request)
    return words, ended(words)


def ended(words: Sequence[Word]) -> Ending:
    """The last word. Raises Refused where the part has none, and its turn is over."""
    last = words[-1] if words else None
    if isinstance(last, Last):
        return last
    raise _events_gone()


async def so_far(handle: AsyncTurnHandle, wanted: Wanted) -> list[Word]:
    """The words of the part that there are now."""
    follower = Follower(handle, wanted)
    events = await handle.events_so_far()
    result = await _result_of(handle) if not events or events[-1].is_final else None
    if not events:
        return await _of_result(handle, wanted, result)
    return [word for event in events for word in follower.fold(event, result if event.is_final else None)]


async def streamed(
    here: Gateway,
    by: Asker,
    request: Request,
    handle: AsyncTurnHandle,
    wanted: Wanted,
    write: Callable[[Word], bytes],
    farewell: bytes | Callable[[], bytes],
    *,
    is_continued: bool = False,
) -> EventStream:
    """The part as a stream, written word by word. Of a turn whose events are gone it has the whole text as one word,
    which continues nothing: Refused is raised for one that `is_continued`."""
    follower = Follower(handle, wanted)

    async def written(event: TurnEvent) -> Written:
        words = await follower.words(event)
        return Written(b"".join(map(write, words)), any(isinstance(word, Last) for word in words))

    try:
        found = await stream(request, here, by, lambda: begin(handle, 0), write=written, farewell=farewell)
    except Refused as refusal:
        if refusal.kind.word != "events-gone" or is_continued:
            raise
        found = None
    if found is not None:
        return found
    words = await _of_result(handle, wanted, await _result_of(handle))
    ended(words)
    return await _told(here, by, request, words, write, farewell)


async def _told(
    here: Gateway,
    by: Asker,
    request: Request,
    words: list[Word],
    write: Callable[[Word], bytes],
    farewell: bytes | Callable[[], bytes],
) -> EventStream:
    """Words that are all there, as a stream."""

    async def nothing() -> AsyncIterator[TurnEvent]:
        for event in ():
            yield event

    async def reading() -> Reading | None:
        return Reading(nothing())

    found = await stream(request, here, by, reading, opening=b"".join(map(write, words)), farewell=farewell)
    assert found is not None
    return found


async def _collected(handle: AsyncTurnHandle, wanted: Wanted) -> list[Word]:
    follower = Follower(handle, wanted)
    words: list[Word] = []
    seen = False
    async for event in handle.events():
        seen = True
        words += await follower.words(event)
        if words and isinstance(words[-1], Last):
            return words
    return words if seen else await _of_result(handle, wanted, await _result_of(handle))


async def _until_over(work: Awaitable[list[Word]], place: Place, request: Request) -> list[Word]:
    task = asyncio.ensure_future(work)
    over = [asyncio.ensure_future(place.stopping.wait()), asyncio.ensure_future(until_gone(request.receive))]
    try:
        await asyncio.wait({task, *over}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return await task
        raise Refused("stopping", "the turn goes on; ask again, under the same Idempotency-Key")
    finally:
        for each in (task, *over):
            each.cancel()


async def _result_of(handle: AsyncTurnHandle) -> TurnResult | None:
    try:
        return await handle.result(timeout_s=0)
    except ResultTimeout:
        return None


async def _of_result(handle: AsyncTurnHandle, wanted: Wanted, result: TurnResult | None) -> list[Word]:
    """Of a turn whose events are gone only the end can be told, and it is the end of its last part.

    Raises Refused for any other part, and where nobody can tell any more which is the last.
    """
    if result is None:
        return []
    theirs = {tool.name for tool in (await handle.request()).client_tools}
    asked = [call for call in await handle.calls() if call.tool in theirs] if theirs else []
    last = {call.call_id for call in asked if call.step == asked[-1].step}
    if wanted.part > 1 or (last and not wanted.behind & last):
        raise _events_gone()
    return list(replayed(handle.turn_id, wanted.part, result))


def _events_gone() -> Refused:
    return Refused("events-gone", "the turn has ended, and its events are no longer kept")
