"""The edge: rates of callers, addresses of clients, and the frames of streams."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue
from starlette.types import Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from brainq.contracts.event import EventKind, TurnEvent
from brainq.gateway.edge.caller_rates import BURST_S, MAX_NAMES, RateLimiter
from brainq.gateway.edge.client_address import address_key, client_address, is_loopback, proxy_options
from brainq.gateway.rest.event_stream import HEARTBEAT, RECONNECT_FRAME, RECONNECT_MS, event_frame
from brainq.runtime.settings.http import HttpSettings
from tests.support.sse import EventReader


def test_a_rate_grants_a_burst_then_as_much_as_time_gives() -> None:
    now = [0.0]
    rate = RateLimiter(2, lambda: now[0])
    most = int(2 * BURST_S)
    assert [rate.take("a") for _ in range(most)] == [0.0] * most
    assert rate.take("a") == pytest.approx(0.5)
    assert rate.take("b") == 0.0, "each has his own"
    now[0] += 0.5
    assert rate.take("a") == 0.0
    assert rate.take("a") > 0


def test_a_rate_keeps_only_those_that_asked_last() -> None:
    rate = RateLimiter(0.1, lambda: 0.0)
    assert rate.take("first") == 0.0
    assert rate.take("first") > 0
    for number in range(MAX_NAMES):
        rate.take(str(number))
    assert rate.take("first") == 0.0


def test_what_is_given_back_is_not_counted() -> None:
    rate = RateLimiter(0.1, lambda: 0.0)
    for _ in range(9):
        assert rate.take("a") == 0.0
        rate.give_back("a")
    assert (rate.take("a"), bool(rate.take("a"))) == (0.0, True)
    rate.give_back("nobody")


@pytest.mark.parametrize(
    ("asked_from", "forwarded", "address"),
    [
        ("10.1.0.7", "192.0.2.1", "192.0.2.1"),
        ("10.1.0.7", "192.0.2.1, 10.1.9.9", "192.0.2.1"),
        ("10.1.0.7", "203.0.113.5, 192.0.2.1", "192.0.2.1"),
        ("10.1.0.7", "", "10.1.0.7"),
        ("192.0.2.9", "192.0.2.1", "192.0.2.9"),
        ("127.0.0.1", "192.0.2.1", "127.0.0.1"),
    ],
)
def test_only_a_trusted_proxy_says_who_asks(asked_from: str, forwarded: str, address: str) -> None:
    seen: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(client_address(scope))

    trusted = proxy_options(HttpSettings(http_proxies="10.1.0.0/16"))["forwarded_allow_ips"]
    headers = [(b"x-forwarded-for", forwarded.encode())] if forwarded else []
    scope = {"type": "http", "scheme": "http", "client": (asked_from, 5000), "headers": headers}
    asyncio.run(ProxyHeadersMiddleware(app, trusted)(scope, None, None))  # type: ignore[arg-type]
    assert seen == [address]


def test_no_proxy_is_trusted_unless_it_is_named() -> None:
    assert proxy_options(HttpSettings(http_proxies="")) == {"proxy_headers": False, "forwarded_allow_ips": []}


def test_a_client_on_a_unix_socket_has_no_address() -> None:
    assert client_address({"type": "http", "client": None}) == ""


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("x" * 9000, ""),
    ],
)
def test_an_address_is_counted_with_all_that_its_owner_has(address: str, counted: str) -> None:
    assert address_key(address) == counted


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost", "LOCALHOST"])
def test_loopback_is_known(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "localhost.evil.example", "", "127.0.0.1.evil"])
def test_nothing_else_is_loopback(host: str) -> None:
    assert not is_loopback(host)


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
