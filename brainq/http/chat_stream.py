"""A turn's stream in the words of a chat wire: from its beginning, or behind what the client has."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from starlette.requests import Request

from brainq.client.async_handle import AsyncTurnHandle
from brainq.contracts.event import EventKind, TurnEvent
from brainq.errors import InvalidInput
from brainq.http.call_details import CallDetails
from brainq.http.chat_fold import ChatState, More
from brainq.http.event_stream import EventStream, Reading, Written, begin, stream
from brainq.http.gateway import Asker, Gateway
from brainq.http.problems import Refused

S = TypeVar("S")
C = TypeVar("C")

ALL = 2**31
COME_AGAIN = "the gateway ends this stream before the turn's end; come again, nothing is lost"
_MARK = re.compile(r"(\d{1,15})(?:\.(\d{1,9}))?")


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a client has read: `count` pieces of event `seq`, and all before it."""

    seq: int = 0
    count: int = ALL


BEGINNING = Mark()


def mark_of(last_event_id: str | None) -> Mark:
    """From the id of the last piece that came. Raises InvalidInput."""
    if not last_event_id:
        return BEGINNING
    found = _MARK.fullmatch(last_event_id)
    if found is None:
        raise InvalidInput(
            "Last-Event-ID", "it is no id of this stream; send the last one that came, or none"
        )
    return Mark(int(found[1]), ALL if found[2] is None else int(found[2]) + 1)


@dataclass(frozen=True, slots=True)
class Wire(Generic[S, C]):
    """A chat wire.

    tell     folds an event: the new state, and the pieces that tell it
    chat     what of the state is every wire's
    encode   a piece as JSON
    opening  the pieces that begin a stream of this state
    rest     those that end one whose turn waits for its reader
    cut      those that end one before its turn's end, and say why
    end      what stands behind the last piece
    """

    tell: Callable[[S, TurnEvent, More], tuple[S, list[C]]]
    chat: Callable[[S], ChatState]
    encode: Callable[[C], bytes]
    opening: Callable[[S], list[C]]
    rest: Callable[[S], list[C]]
    cut: Callable[[str], list[C]]
    end: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    def frames(self, pieces: Iterable[C]) -> bytes:
        """Frames without ids: what is in no event cannot be gone behind."""
        return b"".join(b"data: %s\n\n" % self.encode(piece) for piece in pieces)


class ChatWriter(Generic[S, C]):
    """Writes a turn's events. Those up to `behind` are folded in silence: they make the state that the rest needs."""

    def __init__(
        self, wire: Wire[S, C], state: S, details: CallDetails, behind: Mark, *, opens: bool
    ) -> None:
        self._wire = wire
        self._state = state
        self._details = details
        self._behind = behind
        self._opens = opens

    async def write(self, event: TurnEvent) -> Written:
        more = await self._details.of(event)
        self._state, pieces = self._wire.tell(self._state, event, more)
        seen = (
            self._behind.count
            if event.seq == self._behind.seq
            else 0
            if event.seq > self._behind.seq
            else ALL
        )
        body = b"".join(
            b"id: %d.%d\ndata: %s\n\n" % (event.seq, at, self._wire.encode(piece))
            for at, piece in enumerate(pieces)
            if at >= seen
        )
        if self._opens and event.seq >= self._behind.seq:
            self._opens = False
            body = self._wire.frames(self._wire.opening(self._state)) + body
        return Written(body + self._wire.end if event.is_final else body, event.is_final)

    def rest(self) -> bytes:
        if not self._wire.chat(self._state).waits_for_reader:
            return b""
        return self._wire.frames(self._wire.rest(self._state)) + self._wire.end


async def chat_stream(
    request: Request,
    here: Gateway,
    by: Asker,
    handle: AsyncTurnHandle,
    wire: Wire[S, C],
    state: S,
    behind: Mark = BEGINNING,
    *,
    opens: bool = False,
) -> EventStream | None:
    """The turn from its beginning, or behind a mark; None where there is nothing behind it.

    opens   the wire's opening comes first

    Of a turn that ended some time ago the answer alone is left. Raises Refused where there is no place, or the events
    behind a mark are gone.
    """

    async def begin_reading() -> Reading | None:
        try:
            found = await begin(handle, behind.seq if behind.count == ALL else behind.seq - 1)
        except Refused as refusal:
            if behind.seq or refusal.kind.word != "events-gone":
                raise
            return Reading(_only_the_end())
        if found is None or not behind.seq:
            return found
        await found.close()
        return Reading(handle.events())

    from_beginning = opens and not behind.seq
    writer = ChatWriter(wire, state, CallDetails(handle), behind, opens=opens and not from_beginning)
    return await stream(
        request,
        here,
        by,
        begin_reading,
        write=writer.write,
        opening=wire.frames(wire.opening(state)) if from_beginning else b"",
        farewell=wire.frames(wire.cut(COME_AGAIN)) + wire.end,
        rest=writer.rest,
        headers=wire.headers,
    )


async def _only_the_end() -> AsyncGenerator[TurnEvent]:
    yield TurnEvent(seq=1, kind=EventKind.RESULT, at_ms=0, data={})


async def reply_of(handle: AsyncTurnHandle, step: int) -> Mark:
    """The event with which a step's reply asked for its calls: who answers for one of them has read up to here."""
    for event in await handle.events_so_far():
        if event.kind is EventKind.STEP_ENDED and event.data["step"] == step:
            return Mark(event.seq)
    raise Refused("events-gone", "the turn's events are no longer kept; ask for /result or /transcript")
