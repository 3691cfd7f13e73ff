"""A turn's stream over a chat wire, from the beginning or after the client's position."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar, cast

from brainq.client.async_handle import AsyncTurnHandle
from brainq.contracts.event import EventKind, TurnEvent
from brainq.contracts.history import TurnCall
from brainq.contracts.ids import call_id, full_call_id, parse_call_id
from brainq.errors import InvalidInput
from brainq.gateway.edge.problems import RequestRejected
from brainq.gateway.edge.request import HttpRequest
from brainq.gateway.rest import event_stream
from brainq.gateway.wires.chat.fold import ChatEvent, ChatState, EventDetails, fold

NO_DETAILS = EventDetails()
LAST_INDEX = 10**9 - 1
"""The highest index of a call in its step."""
C = TypeVar("C")
ALL_PIECES = 2**31
RECONNECT_TEXT = "the gateway ends this stream before the turn has ended; reconnect to continue, nothing is lost"
_POSITION = re.compile(r"(\d{1,15})(?:\.(\d{1,9}))?")


class DetailsLookup:
    """A lookup of the details of one turn's events. A call that has ended is looked up once."""

    def __init__(self, handle: AsyncTurnHandle) -> None:
        self._handle = handle
        self._ended_calls: dict[str, TurnCall] = {}

    async def look_up(self, event: TurnEvent) -> EventDetails:
        """Return the details of an event. Raises what the handle's verbs raise."""
        data = cast("dict[str, Any]", event.data)
        match event.kind:
            case EventKind.STEP_ENDED if data["calls"]:
                return EventDetails(calls=await self._calls([planned["call"] for planned in data["plan"]]))
            case EventKind.CALL_ENDED:
                return EventDetails(calls=await self._calls([data["call"]]))
            case EventKind.APPROVAL_DECIDED if data.get("edited"):
                full = full_call_id(self._handle.turn_id, data["call"])
                edited = [found for found in await self._handle.approvals() if found.id == full]
                return EventDetails(arguments=edited[0].arguments if edited else None)
            case EventKind.RESULT:
                return EventDetails(result=await self._handle.result(timeout_s=0))
            case _:
                return NO_DETAILS

    async def _calls(self, wanted: list[str]) -> tuple[TurnCall, ...]:
        """Return the calls with these ids, all of one step. Reads only the range from the first to the last of them."""
        ids = [full_call_id(self._handle.turn_id, call) for call in wanted]
        if all(full in self._ended_calls for full in ids):
            return tuple(self._ended_calls[full] for full in ids)
        places = [parse_call_id(call) for call in wanted]
        (step, first), (_, last) = min(places), max(places)
        found = await self._handle.calls(last - first + 1, self._before(step, first))
        calls = {call.id: call for call in found}
        self._ended_calls.update((full, call) for full, call in calls.items() if call.status.is_settled)
        return tuple(calls[full] for full in ids if full in calls)

    def _before(self, step: int, index: int) -> str | None:
        """Return the id that precedes the id of this call, whether or not a call with that id exists. Returns None for
        the first call."""
        if index:
            return full_call_id(self._handle.turn_id, call_id(step, index - 1))
        return full_call_id(self._handle.turn_id, call_id(step - 1, LAST_INDEX)) if step else None


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """The position up to which a client has read: `count` pieces of event `seq`, and all events before it."""

    seq: int = 0
    count: int = ALL_PIECES


FROM_START = StreamPosition()


def read_position(last_event_id: str | None) -> StreamPosition:
    """Return the position after the piece with this id. Raises InvalidInput for an id of no stream."""
    if not last_event_id:
        return FROM_START
    found = _POSITION.fullmatch(last_event_id)
    if found is None:
        raise InvalidInput(
            "Last-Event-ID", "it is not an id of this stream; send the last id that you received, or no id"
        )
    return StreamPosition(int(found[1]), ALL_PIECES if found[2] is None else int(found[2]) + 1)


class ChatWire(ABC, Generic[C]):
    """A chat wire's rendering of one turn. It folds chat events into pieces, which are the same at every gateway.

    end      the bytes after the last piece
    headers  headers in addition to those of every stream
    """

    end: ClassVar[bytes] = b""
    headers: ClassVar[Mapping[str, str]] = {}

    def __init__(self, turn_id: str) -> None:
        self.chat = ChatState(turn_id)

    def read(self, event: TurnEvent, more: EventDetails) -> list[C]:
        """Return the pieces of the turn's next event."""
        self.chat, chat_events = fold(self.chat, event, more)
        return [piece for chat_event in chat_events for piece in self.render(chat_event)]

    @abstractmethod
    def render(self, event: ChatEvent) -> list[C]:
        """Return the pieces of the next chat event."""

    @abstractmethod
    def opening(self) -> list[C]:
        """Return the pieces that begin a stream at this point."""

    @abstractmethod
    def rest(self) -> list[C]:
        """Return the pieces that end a stream whose turn waits for its reader. Has no side effect."""

    @abstractmethod
    def cut(self, why: str) -> list[C]:
        """Return the pieces that end a stream whose turn continues, so that the client reconnects."""

    @abstractmethod
    def encode(self, piece: C) -> bytes:
        """Encode a piece as JSON."""

    def frames(self, pieces: Iterable[C]) -> bytes:
        """Return frames without ids: these pieces belong to no event, so a stream cannot continue after them."""
        return b"".join(b"data: %s\n\n" % self.encode(piece) for piece in pieces)


class ChatWriter(event_stream.StreamEncoding, Generic[C]):
    """An encoder of a turn's events. Events up to `behind` only update the wire's state."""

    def __init__(self, wire: ChatWire[C], details: DetailsLookup, behind: StreamPosition, *, opens: bool) -> None:
        self._wire = wire
        self._details = details
        self._behind = behind
        self._opens = opens and behind.seq > 0
        self.opening = wire.frames(wire.opening()) if opens and not behind.seq else b""
        self.headers = wire.headers

    async def write(self, event: TurnEvent) -> event_stream.EncodedEvent:
        pieces = self._wire.read(event, await self._details.look_up(event))
        skipped = (
            self._behind.count if event.seq == self._behind.seq else 0 if event.seq > self._behind.seq else ALL_PIECES
        )
        body = b"".join(
            b"id: %d.%d\ndata: %s\n\n" % (event.seq, at, self._wire.encode(piece))
            for at, piece in enumerate(pieces)
            if at >= skipped
        )
        if self._opens and event.seq >= self._behind.seq:
            self._opens = False
            body = self._wire.frames(self._wire.opening()) + body
        return event_stream.EncodedEvent(body + self._wire.end if event.is_final else body, event.is_final)

    def rest(self) -> bytes:
        if not self._wire.chat.waits_for_reader:
            return b""
        return self._wire.frames(self._wire.rest()) + self._wire.end

    def farewell(self) -> bytes:
        return self._wire.frames(self._wire.cut(RECONNECT_TEXT)) + self._wire.end


async def chat_stream(
    request: HttpRequest,
    handle: AsyncTurnHandle,
    wire: ChatWire[C],
    behind: StreamPosition = FROM_START,
    *,
    opens: bool = False,
) -> event_stream.EventStream | None:
    """Stream the turn from the beginning or after a position. Returns None if nothing follows the position.

    opens   True to begin with the wire's opening

    If the turn ended so long ago that its events are gone, the stream has only the answer. Raises RequestRejected if no
    slot is free, or if the events after the position are gone.
    """
    writer = ChatWriter(wire, DetailsLookup(handle), behind, opens=opens)
    return await event_stream.stream_events(request, lambda: _begin_reading(handle, behind), writer)


async def _begin_reading(handle: AsyncTurnHandle, behind: StreamPosition) -> event_stream.EventReader | None:
    """Read all events, because the ones up to the position build the state. Returns None if none follows it."""
    try:
        found = await event_stream.open_events(handle, behind.seq if behind.count == ALL_PIECES else behind.seq - 1)
    except RequestRejected as refusal:
        if behind.seq or refusal.kind.word != "events-gone":
            raise
        return event_stream.EventReader(_result_event_only())
    if found is None or not behind.seq:
        return found
    await found.close()
    return event_stream.EventReader(handle.events())


async def _result_event_only() -> AsyncGenerator[TurnEvent]:
    yield TurnEvent(seq=1, kind=EventKind.RESULT, at_ms=0, data={})


async def position_of_reply(handle: AsyncTurnHandle, step: int) -> StreamPosition:
    """Return the position of a step's reply. A client that answers one of its calls has read up to there."""
    for event in await handle.events_so_far():
        if event.kind is EventKind.STEP_ENDED and event.data["step"] == step:
            return StreamPosition(event.seq)
    raise RequestRejected("events-gone", "the turn's events are gone; read /result or /transcript")
