"""A stream as a response: how it begins, how it ends, and that it leaves nothing behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from typing import Any

import pytest

from brainq.contracts.event import EventKind, TurnEvent
from brainq.errors import ResultTimeout, Unreachable
from brainq.gateway.edge.limits import StreamLimiter, StreamSlot
from brainq.gateway.edge.problems import RequestRejected
from brainq.gateway.rest import event_stream
from brainq.gateway.rest.event_stream import (
    RECONNECT_FRAME,
    EncodedEvent,
    EventReader,
    EventStream,
    StreamEncoding,
    event_frame,
    open_events,
)
from tests.support.sse import read

FIRST, LAST = (
    TurnEvent(seq=seq, kind=kind, at_ms=seq, data={})
    for seq, kind in ((1, EventKind.TURN_ACTIVE), (2, EventKind.RESULT))
)


Does = Callable[[StreamSlot, Callable[[], None]], None]


class FakeHandle:
    """A turn that has told `events`, and then `then` happens."""

    def __init__(self, *events: TurnEvent, then: BaseException | None = None, ended: bool = False) -> None:
        self._events = events
        self._then = then
        self._ended = ended
        self.is_kept = True
        self.is_closed = False

    async def events(self, after: int = 0) -> AsyncGenerator[TurnEvent]:
        try:
            for event in self._events:
                if event.seq > after:
                    yield event
            if self._then is not None:
                raise self._then
            if not self._ended:
                await asyncio.Event().wait()
        finally:
            self.is_closed = True

    async def result(self, timeout_s: float) -> str:
        if not self._ended:
            raise ResultTimeout("not yet")
        return "the result"

    async def snapshot(self) -> str | None:
        return "a snapshot" if self.is_kept else None


async def welcome() -> bool:
    return True


async def stream(
    handle: Any,
    do: Does,
    heartbeat_s: float = 60,
    may_still_read: Callable[[], Awaitable[bool]] = welcome,
    encoding: StreamEncoding | None = None,
) -> tuple[bytes, StreamLimiter]:
    """What is sent of a handle's stream; `do(place, leave)` is called after the first event."""
    streams = StreamLimiter(2, 2)
    place = streams.enter("a")
    left = asyncio.Event()
    sent: list[bytes] = []

    async def receive() -> Any:
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body" and message["body"]:
            sent.append(message["body"])
            if len(sent) == 1:
                do(place, left.set)

    await EventStream(EventReader(handle.events()), place, heartbeat_s, may_still_read, encoding or StreamEncoding())(
        {"type": "http"}, receive, send
    )
    return b"".join(sent), streams


def nothing(place: StreamSlot, leave: Callable[[], None]) -> None:
    """The reader goes on."""


def stops(place: StreamSlot, leave: Callable[[], None]) -> None:
    place.stopping.set()


def leaves(place: StreamSlot, leave: Callable[[], None]) -> None:
    leave()


def run(made: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(made, 30))


def test_a_stream_ends_with_the_final_event() -> None:
    handle = FakeHandle(FIRST, LAST)
    sent, streams = run(stream(handle, nothing))
    assert sent == event_frame(FIRST) + event_frame(LAST)
    assert (len(streams), handle.is_closed) == (0, True)


@pytest.mark.parametrize(
    ("then", "do", "rest"),
    [(Unreachable("Redis is away"), nothing, RECONNECT_FRAME), (None, stops, RECONNECT_FRAME), (None, leaves, b"")],
    ids=["Redis is away", "the gateway stops", "the reader leaves"],
)
def test_a_stream_that_is_not_over_is_closed_with_a_word(then: BaseException | None, do: Does, rest: bytes) -> None:
    handle = FakeHandle(FIRST, then=then)
    sent, streams = run(stream(handle, do))
    assert sent == event_frame(FIRST) + rest
    assert [event["seq"] for event in read(sent)] == [1]
    assert (len(streams), handle.is_closed) == (0, True)


async def unwelcome() -> bool:
    return False


async def nobody_can_say() -> bool:
    raise Unreachable("SQL is away")


@pytest.mark.parametrize("may_still_read", [unwelcome, nobody_can_say])
def test_a_stream_ends_where_its_reader_may_not_read_or_nobody_can_say(
    may_still_read: Callable[[], Awaitable[bool]],
) -> None:
    sent, streams = run(stream(FakeHandle(FIRST, LAST), nothing, 0.0, may_still_read))
    assert (sent, len(streams)) == (RECONNECT_FRAME, 0)
    assert run(stream(FakeHandle(FIRST, LAST), nothing, 0.0))[0] == event_frame(FIRST) + event_frame(LAST)


def test_another_wire_opens_its_streams_writes_nothing_of_some_events_and_ends_where_it_likes() -> None:
    """What it writes nothing of is still the last event where it says so."""
    more = TurnEvent(seq=2, kind=EventKind.TURN_PARKED, at_ms=2, data={})
    asked: list[int] = []

    class Quiet(StreamEncoding):
        opening = b"open "

        async def write(self, event: TurnEvent) -> EncodedEvent:
            asked.append(event.seq)
            return EncodedEvent(b"first" if event is FIRST else b"", event is more)

    sent, streams = run(stream(FakeHandle(FIRST, more, LAST), nothing, encoding=Quiet()))
    assert (sent, asked) == (b"open first", [1, 2])
    assert len(streams) == 0


async def _begun(handle: Any, seen: int) -> int | None:
    """The number of the next event, or None where there is nothing to come again for."""
    reading = await open_events(handle, seen)
    if reading is None:
        return None
    event = await reading.next
    await reading.close()
    return event.seq if event else 0


def test_a_stream_begins_behind_what_was_seen() -> None:
    over = FakeHandle(FIRST, LAST, ended=True)
    assert [run(_begun(over, seen)) for seen in (0, 1, 2, 7)] == [1, 2, None, None]
    over.is_kept = False
    assert run(_begun(over, 1)) == 2


class LateHandle(FakeHandle):
    """Its events come once somebody has asked whether it is over."""

    def __init__(self, *events: TurnEvent) -> None:
        super().__init__(*events)
        self._may_come = asyncio.Event()

    async def events(self, after: int = 0) -> AsyncGenerator[TurnEvent]:
        await self._may_come.wait()
        async for event in super().events(after):
            yield event

    async def result(self, timeout_s: float) -> str:
        self._may_come.set()
        return await super().result(timeout_s)


def test_what_was_seen_is_not_sent_again_where_the_first_read_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "FIRST_EVENT_S", 0.01)
    assert [run(_begun(LateHandle(FIRST, LAST), seen)) for seen in (0, 1)] == [1, 2]


def test_events_that_are_gone_are_refused() -> None:
    gone = FakeHandle(ended=True)
    gone.is_kept = False
    for seen in (0, 3):
        with pytest.raises(RequestRejected) as refused:
            run(_begun(gone, seen))
        assert refused.value.kind.word == "events-gone"
    assert gone.is_closed
