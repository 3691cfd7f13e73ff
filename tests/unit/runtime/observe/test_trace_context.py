"""W3C trace context, and ids that follow from a turn's."""

from __future__ import annotations

import pytest

from brainq.engine.people.admission import read_request
from brainq.errors import InvalidInput
from brainq.runtime.observe.tracing import call_span_id, place_at, read_traceparent, traceparent_of, turn_context

GOOD = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_a_traceparent_is_read_and_written() -> None:
    place = read_traceparent(GOOD)
    assert place == place_at(0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331, 1)
    assert place is not None
    assert traceparent_of(place) == GOOD
    assert read_traceparent(f" {GOOD} ") == place


def test_of_a_later_version_what_follows_is_ignored() -> None:
    assert read_traceparent(GOOD.replace("00-", "cc-", 1) + "-what-follows") == read_traceparent(GOOD)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "00",
        GOOD.upper(),
        GOOD + "-more",
        GOOD.replace("00-", "ff-", 1),
        f"00-{'0' * 32}-b7ad6b7169203331-01",
        f"00-0af7651916cd43dd8448eb211c80319c-{'0' * 16}-01",
    ],
)
def test_what_w3c_says_is_none_is_ignored(text: str | None) -> None:
    assert read_traceparent(text) is None


def test_a_turn_is_in_its_producers_trace_and_keeps_its_decision() -> None:
    producer = read_traceparent(GOOD)
    assert producer is not None
    place = turn_context("t1", GOOD[:-2] + "00", lambda trace_id: True)
    assert (place.trace_id, place.trace_flags) == (producer.trace_id, 0)
    assert place.span_id != producer.span_id


def test_without_a_producer_the_trace_follows_from_the_turn() -> None:
    asked: list[int] = []

    def sampled(trace_id: int) -> bool:
        asked.append(trace_id)
        return False

    place = turn_context("t1", None, sampled)
    assert place == turn_context("t1", None, sampled)
    assert asked == [place.trace_id] * 2
    assert place.trace_flags == 0
    assert place.trace_id != turn_context("t2", None, sampled).trace_id


def test_each_attempt_of_each_call_has_an_id_of_its_own() -> None:
    ids = {call_span_id(t, c, n) for t in ("t1", "t2") for c in ("c1-0", "c1-1") for n in (1, 2)}
    assert len(ids) == 8


def test_a_wrong_field_is_refused_where_it_enters() -> None:
    with pytest.raises(InvalidInput, match="traceparent: it is not a W3C trace context"):
        read_request({"session_id": "s1", "user_message": "hi", "traceparent": "00-1-2-3"})
