"""A turn's events over HTTP: frames out of bytes, and a stream that is cut off anywhere is continued."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brainq import Event, HttpClient, ResultOut, ResultTimeout, TurnNotFound, TurnRejected, UnknownEvent
from brainq.client.http import streams
from brainq.client.http.sending import BlockingTransport
from brainq.client.http.streams import read_frames
from brainq.contracts.typed_events import make_event
from brainq.gateway.rest.event_stream import HEARTBEAT, RECONNECT_FRAME, event_frame

ODD = "a\nb\r\x0b\x0c\x1c\x85\u2028\u2029 data: x\n\nid: 9 😀"
EVENTS: list[Event] = [
    make_event(1, "turn.active", 1, {"deadline_in_ms": 5}),
    make_event(2, "text.delta", 2, {"step": 1, "attempt": 1, "text": ODD}),
    make_event(3, "turn.teleported", 3, {"where": ODD}),
    make_event(4, "result", 4, {"ending": "completed", "stop_reason": "answered", "elapsed_ms": 3}),
]
WHOLE = HEARTBEAT + b"".join(event_frame(event) + HEARTBEAT for event in EVENTS)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    async def sleep(self: BlockingTransport, pause_s: float) -> None:
        pass

    monkeypatch.setattr(BlockingTransport, "sleep", sleep)


def read(pieces: Sequence[bytes]) -> list[Event | None]:
    async def come() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    async def whole() -> list[Event | None]:
        return [event async for event in read_frames(come())]

    return asyncio.run(whole())


@settings(max_examples=50, deadline=None)
@given(cuts=st.lists(st.integers(0, len(WHOLE)), max_size=8).map(sorted))
def test_frames_are_read_however_they_are_cut(cuts: list[int]) -> None:
    pieces = [WHOLE[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(WHOLE)], strict=True)]
    assert [event for event in read(pieces) if event is not None] == EVENTS


def test_a_frame_that_is_cut_off_is_left_out() -> None:
    whole = event_frame(EVENTS[0])
    assert read([whole, event_frame(EVENTS[1])[:-1]]) == [EVENTS[0]]
    assert read([RECONNECT_FRAME]) == [None]
    assert read([event_frame(EVENTS[0]).replace(b"\n", b"\r\n")]) == [EVENTS[0]]


class Cut(httpx.SyncByteStream):
    """A stream that ends as its connection does."""

    def __init__(self, body: bytes, is_broken: bool) -> None:
        self._body = body
        self._is_broken = is_broken
        self.is_closed = False

    def __iter__(self) -> Iterator[bytes]:
        yield self._body
        if self._is_broken:
            raise httpx.ReadError("cut off")

    def close(self) -> None:
        self.is_closed = True


class Gateway:
    """A gateway whose streams are cut off after each of these numbers of bytes, and then whole."""

    def __init__(self, *cuts: int, is_broken: bool = True, repeats: int = 0) -> None:
        self._cuts = list(cuts)
        self._is_broken = is_broken
        self._repeats = repeats
        self.afters: list[int] = []
        self.streams: list[Cut] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        after = int(request.headers["Last-Event-ID"])
        self.afters.append(after)
        body = b"".join(event_frame(event) for event in EVENTS if event.seq > after - self._repeats)
        stream = Cut(body[: self._cuts.pop(0)], self._is_broken) if self._cuts else Cut(body, False)
        self.streams.append(stream)
        return httpx.Response(200, stream=stream)

    def handle(self) -> Any:
        return handle_of(self)


def handle_of(answer: Any) -> Any:
    def route(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/events"):
            return answer(request)
        return httpx.Response(200, json={"turn_id": "t-1", "session_id": "s1"})

    return HttpClient("http://gateway", transport=httpx.MockTransport(route)).handle("t-1")


@settings(max_examples=50, deadline=None)
@given(cuts=st.lists(st.integers(0, len(WHOLE)), max_size=5), is_broken=st.booleans(), repeats=st.integers(0, 4))
def test_every_event_comes_once_and_in_order_however_streams_end(
    cuts: list[int], is_broken: bool, repeats: int
) -> None:
    gateway = Gateway(*cuts, is_broken=is_broken, repeats=repeats)
    assert list(gateway.handle().events()) == EVENTS
    assert gateway.afters == sorted(gateway.afters)
    assert all(stream.is_closed for stream in gateway.streams)


def test_a_reader_that_stops_closes_its_stream() -> None:
    gateway = Gateway()
    for event in gateway.handle().events():
        assert event.seq == 1
        break
    assert gateway.streams[0].is_closed


def test_it_begins_where_it_is_told_and_may_have_nothing() -> None:
    gateway = Gateway()
    (last,) = gateway.handle().events(after=3)
    assert isinstance(last, ResultOut)
    assert gateway.afters == [3]
    assert list(handle_of(answering(httpx.Response(204))).events(after=4)) == []
    kinds = [type(event) for event in Gateway().handle().events()]
    assert kinds[2] is UnknownEvent


def answering(response: httpx.Response) -> Any:
    def answer(_: httpx.Request) -> httpx.Response:
        return response

    return answer


@pytest.mark.parametrize(
    ("word", "status", "error"), [("turn-rejected", 409, TurnRejected), ("not-found", 404, TurnNotFound)]
)
def test_a_turn_that_has_no_stream_is_an_error(word: str, status: int, error: type[Exception]) -> None:
    problem = {"type": f"urn:brainq:problem:{word}", "title": "", "status": status, "detail": "why"}
    with pytest.raises(error, match="why"):
        list(handle_of(answering(httpx.Response(status, json=problem))).events())


def test_events_that_have_expired_are_none() -> None:
    problem = {"type": "urn:brainq:problem:events-gone", "title": "", "status": 410, "detail": "gone"}
    assert list(handle_of(answering(httpx.Response(410, json=problem))).events()) == []


def test_silence_is_measured_by_the_callers_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(streams, "monotonic", lambda: now[0])
    timeouts: list[float] = []

    def answer(request: httpx.Request) -> httpx.Response:
        timeouts.append(request.extensions["timeout"]["read"])
        return httpx.Response(200, stream=Silent())

    class Silent(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            now[0] += timeouts[-1]
            raise httpx.ReadTimeout("silent")
            yield b""

    began = handle_of(answer)
    monkeypatch.setattr("brainq.client.http.async_handle.monotonic", lambda: now[0])
    with pytest.raises(ResultTimeout, match="no event for 90 s"):
        list(began.events(idle_s=90))
    assert timeouts == [60, 30]
