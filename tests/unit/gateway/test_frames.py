"""The fold: events to frames. Whatever is cut off, and wherever, a reader that comes again holds the same whole."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from brainq.contracts.event import EventKind, TurnEvent
from brainq.gateway.rest.event_stream import HEARTBEAT, RECONNECT_FRAME, RECONNECT_MS, event_frame
from tests.support.sse import EventReader

LIVE = [kind for kind in EventKind if kind is not EventKind.RESULT]
DATA: st.SearchStrategy[dict[str, JsonValue]] = st.dictionaries(
    st.text(max_size=8), st.one_of(st.text(), st.integers(-(2**53), 2**53), st.none(), st.booleans()), max_size=4
)


@st.composite
def turns(draw: st.DrawFn) -> list[TurnEvent]:
    kinds = draw(st.lists(st.sampled_from(LIVE), max_size=12))
    return [
        TurnEvent(seq=seq, kind=kind, at_ms=seq, data=draw(DATA))
        for seq, kind in enumerate([*kinds, EventKind.RESULT], start=1)
    ]


@given(turns(), st.data())
def test_a_reader_that_is_dropped_at_every_event_holds_the_same_whole(events: list[TurnEvent], data: Any) -> None:
    reader = EventReader()
    while not reader.is_over:
        seen = int(reader.last_id or 0)
        left = [event for event in events if event.seq > seen]
        stream = HEARTBEAT + event_frame(left[0]) + b"".join(event_frame(event) for event in left[1:]) + RECONNECT_FRAME
        least = len(HEARTBEAT + event_frame(left[0]))  # at least one comes, and the next may be cut anywhere
        upto = data.draw(st.integers(least, least + (len(event_frame(left[1])) if len(left) > 1 else 0)))
        reader.feed(stream[:upto])
        reader.lost()
    assert reader.events == [event.model_dump(mode="json") for event in events]


def test_what_is_no_event_changes_no_id() -> None:
    reader = EventReader()
    reader.feed(event_frame(TurnEvent(seq=7, kind=EventKind.TEXT_DELTA, at_ms=1, data={"text": "a\nb\r\u2028😀"})))
    reader.feed(HEARTBEAT + RECONNECT_FRAME)
    assert (reader.last_id, len(reader.events), reader.retry_ms) == ("7", 1, RECONNECT_MS)
    assert reader.events[0]["data"]["text"] == "a\nb\r\u2028😀"
    assert len(reader.comments) == 2
