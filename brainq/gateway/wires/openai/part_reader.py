"""Reading one part of a turn, as a stream or as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from starlette.responses import Response

from brainq.client.async_handle import AsyncTurnHandle
from brainq.contracts.event import TurnEvent
from brainq.contracts.turn import TurnResult
from brainq.engine.brain.brains import complete_request
from brainq.gateway.edge.problems import RequestRejected
from brainq.gateway.edge.request import Gateway, HttpRequest
from brainq.gateway.rest.event_stream import (
    EncodedEvent,
    StreamEncoding,
    open_events,
    result_if_ready,
    stream_events,
    unless_over,
)
from brainq.gateway.wires.openai.part_fold import PartEnd, PartEnded, PartEvent, PartFold, part_of_result


@dataclass(frozen=True, slots=True)
class PartSelector:
    """A selection of one part: by its number, or as the one after the part that requested these calls.

    For `in_one_piece` see PartFold.
    """

    part: int = 1
    after_calls: frozenset[str] = frozenset()
    in_one_piece: bool = False

    def selects(self, event: PartEvent, fold: PartFold) -> bool:
        if not self.after_calls:
            return event.part == self.part
        parts = [fold.parked_in[call] for call in self.after_calls if call in fold.parked_in]
        return bool(parts) and event.part == max(parts) + 1


async def select_part(
    gateway: Gateway, handle: AsyncTurnHandle, part: int = 1, after_calls: frozenset[str] = frozenset()
) -> PartSelector:
    """Select this part of the turn, in one piece if the turn has an output schema."""
    request = complete_request(gateway.brains, await handle.request())
    return PartSelector(part, after_calls, in_one_piece=request.output_schema is not None)


class PartReader:
    """A fold of a turn's events to the events of the selected part."""

    def __init__(self, handle: AsyncTurnHandle, selector: PartSelector) -> None:
        self._handle = handle
        self._selector = selector
        self._fold = PartFold(handle.turn_id, in_one_piece=selector.in_one_piece)

    async def read(self, event: TurnEvent) -> list[PartEvent]:
        """Return the part's events for the turn's next event."""
        part_events = await _read_event(self._fold, self._handle, event)
        return [each for each in part_events if self._selector.selects(each, self._fold)]


async def _read_event(fold: PartFold, handle: AsyncTurnHandle, event: TurnEvent) -> list[PartEvent]:
    return fold.read(event, await result_if_ready(handle) if event.is_final else None)


async def fold_so_far(handle: AsyncTurnHandle, *, in_one_piece: bool = False) -> tuple[PartFold, list[PartEvent]]:
    """Fold the turn's events so far. Returns the fold and the events of all parts, which are empty if the turn's events
    are gone."""
    fold, part_events = PartFold(handle.turn_id, in_one_piece=in_one_piece), list[PartEvent]()
    for event in await handle.events_so_far():
        part_events += await _read_event(fold, handle, event)
    return fold, part_events


async def read_part_so_far(handle: AsyncTurnHandle, selector: PartSelector) -> list[PartEvent]:
    fold, part_events = await fold_so_far(handle, in_one_piece=selector.in_one_piece)
    if not part_events:
        return await _events_of_result(handle, selector, await result_if_ready(handle))
    return [event for event in part_events if selector.selects(event, fold)]


async def read_part(
    request: HttpRequest, handle: AsyncTurnHandle, selector: PartSelector
) -> tuple[list[PartEvent], PartEnd]:
    """Wait for the end of the part. Returns all of its events, and the last one.

    Raises RequestRejected if the gateway stops first, or if the turn's events are gone and the part is unknown.
    """
    with request.stream_slot() as slot:
        part_events = await unless_over(_collect(handle, selector), request, slot)
    if part_events is None:
        raise RequestRejected("stopping", "the turn continues; try again with the same Idempotency-Key")
    return part_events, require_end(part_events)


def require_end(part_events: Sequence[PartEvent]) -> PartEnd:
    """Return the last event. Raises RequestRejected if the turn has ended but the part's end is gone."""
    last = part_events[-1] if part_events else None
    if isinstance(last, PartEnded):
        return last
    raise _events_gone()


class PartStream(StreamEncoding):
    """The encoding of a part. `cut` returns the last bytes of a stream that is closed before the part has ended."""

    def __init__(self, reader: PartReader, write: Callable[[PartEvent], bytes], cut: Callable[[], bytes]) -> None:
        self._reader = reader
        self._write = write
        self._cut = cut

    async def write(self, event: TurnEvent) -> EncodedEvent:
        part_events = await self._reader.read(event)
        return EncodedEvent(
            b"".join(map(self._write, part_events)), any(isinstance(each, PartEnded) for each in part_events)
        )

    def farewell(self) -> bytes:
        return self._cut()


async def stream_part(
    request: HttpRequest,
    handle: AsyncTurnHandle,
    selector: PartSelector,
    write: Callable[[PartEvent], bytes],
    cut: Callable[[], bytes],
    *,
    is_continued: bool = False,
) -> Response:
    """Stream the part. If the turn's events are gone, the stream has the result as one text.

    Raises RequestRejected if the events are gone and the stream `is_continued`, because one text continues no stream.
    """
    encoding = PartStream(PartReader(handle, selector), write, cut)
    try:
        found = await stream_events(request, lambda: open_events(handle, 0), encoding)
    except RequestRejected as refusal:
        if refusal.kind.word != "events-gone" or is_continued:
            raise
        found = None
    if found is not None:
        return found
    part_events = await _events_of_result(handle, selector, await result_if_ready(handle))
    require_end(part_events)
    return Response(b"".join(map(write, part_events)), media_type="text/event-stream")


async def _collect(handle: AsyncTurnHandle, selector: PartSelector) -> list[PartEvent]:
    reader = PartReader(handle, selector)
    part_events: list[PartEvent] = []
    has_events = False
    async for event in handle.events():
        has_events = True
        part_events += await reader.read(event)
        if part_events and isinstance(part_events[-1], PartEnded):
            return part_events
    return part_events if has_events else await _events_of_result(handle, selector, await result_if_ready(handle))


async def _events_of_result(
    handle: AsyncTurnHandle, selector: PartSelector, result: TurnResult | None
) -> list[PartEvent]:
    """Return the end of a turn whose events are gone, which is the end of its last part.

    Raises RequestRejected for any other part, and if the number of the last part is unknown.
    """
    if result is None:
        return []
    client_tools = {tool.name for tool in (await handle.request()).client_tools}
    calls = [call for call in await handle.calls() if call.tool in client_tools] if client_tools else []
    last = {call.id for call in calls if call.step == calls[-1].step}
    if selector.part > 1 or (last and not selector.after_calls & last):
        raise _events_gone()
    return part_of_result(handle.turn_id, selector.part, result)


def _events_gone() -> RequestRejected:
    return RequestRejected("events-gone", "the turn has ended, and its events are gone")
