"""Turns over HTTP: submit once, wait, look, follow from any number, read what was said."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from brainq.client.client import Client
from brainq.gateway.rest.event_stream import RECONNECT_MS
from tests.support.gateways import GatewayThread
from tests.support.parts import forget
from tests.support.pump import Pump
from tests.support.sse import EventReader, read
from tests.support.wait import wait_until


def problem(answer: httpx.Response, status: int, word: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert (told["status"], told["type"]) == (status, f"urn:brainq:problem:{word}")
    assert told["title"]
    assert told["detail"]
    return told


def submit(gateway: GatewayThread, message: str = "look", session: str = "s1", **more: Any) -> str:
    answer = gateway.http.post("/v1/turns", json={"session_id": session, "user_message": message, **more})
    assert answer.status_code == 202, answer.text
    assert answer.headers["location"] == f"/v1/turns/{answer.json()['turn_id']}"
    return answer.json()["turn_id"]


def test_a_turn_from_submit_to_transcript(gateway: GatewayThread, pump: Pump) -> None:
    turn_id = submit(gateway, limits={"max_steps": 3}, metadata={"order": 7})
    assert pump.wiring.store.turns.request(turn_id).limits.max_steps == 3  # pyright: ignore[reportOptionalMemberAccess]
    seen = gateway.http.get(f"/v1/turns/{turn_id}").json()
    assert (seen["state"], seen["snapshot"]["awaits"]) == ("active", "coordinator")
    waiting = gateway.http.get(f"/v1/turns/{turn_id}/result")
    assert (waiting.status_code, waiting.json()["state"]) == (202, "active")
    pump.finish(pump.client.handle(turn_id))
    result = gateway.http.get(f"/v1/turns/{turn_id}/result")
    assert (result.status_code, result.json()["text"]) == (200, "Read: seen")
    said = gateway.http.get(f"/v1/turns/{turn_id}/transcript").json()["messages"]
    assert [message["role"] for message in said] == ["user", "assistant", "tool", "assistant"]
    rest = gateway.http.get(f"/v1/turns/{turn_id}/transcript", params={"after": 2, "limit": 1}).json()
    assert rest["messages"] == said[2:3]
    (call,) = gateway.http.get(f"/v1/turns/{turn_id}/calls").json()["calls"]
    assert (call["tool"], call["result"]) == ("look", "seen")
    after = gateway.http.get(f"/v1/turns/{turn_id}/calls", params={"after": call["id"]})
    assert after.json()["calls"] == []
    assert gateway.http.get(f"/v1/turns/{turn_id}").json()["state"] == "completed"
    forget(pump)
    kept = gateway.http.get(f"/v1/turns/{turn_id}").json()
    assert (kept["state"], kept["snapshot"]) == ("completed", None)
    assert gateway.http.get(f"/v1/turns/{turn_id}/result").json()["text"] == "Read: seen"
    problem(gateway.http.get(f"/v1/turns/{turn_id}/events"), 410, "events-gone")


def test_the_same_key_is_the_same_turn(gateway: GatewayThread, pump: Pump) -> None:
    body = {"session_id": "s1", "user_message": "hello"}
    key = {"Idempotency-Key": "order-17"}
    first, again = (gateway.http.post("/v1/turns", json=body, headers=key).json() for _ in range(2))
    assert (first["created"], again["created"]) == (True, False)
    assert first["turn_id"] == again["turn_id"] == pump.client.find("order-17").turn_id
    quoted = gateway.http.post("/v1/turns", json=body, headers={"Idempotency-Key": '"order-17"'})
    assert quoted.json()["turn_id"] == first["turn_id"]
    other = gateway.http.post("/v1/turns", json=body | {"user_message": "bye"}, headers=key)
    assert f"key was already used by turn {first['turn_id']!r}" in problem(other, 409, "submit-conflict")["detail"]
    for derived in ("in-1", "ch-1", "schedule:a:1", '"in-1"', '"', '"a b"', "'a'"):
        told = gateway.http.post("/v1/turns", json=body, headers={"Idempotency-Key": derived})
        assert problem(told, 422, "invalid-input")["field"] == "Idempotency-Key"


def test_a_wait_ends_with_the_result_or_with_where_to_look(gateway: GatewayThread, pump: Pump) -> None:
    body = {"session_id": "s1", "user_message": "hello"}
    late = gateway.http.post("/v1/turns", json=body, headers={"Prefer": "wait=1"})
    assert (late.status_code, late.headers["preference-applied"]) == (202, "wait=1")
    answers: list[httpx.Response] = []
    url = f"/v1/turns/{late.json()['turn_id']}/result"
    waiter = threading.Thread(target=lambda: answers.append(gateway.http.get(url, headers={"Prefer": "wait=30"})))
    waiter.start()
    wait_until(lambda: len(gateway.gateway.streams) == 1, "it waits")
    pump.finish(pump.client.handle(late.json()["turn_id"]))
    waiter.join(30)
    assert (answers[0].status_code, answers[0].json()["text"]) == (200, "Read: hello")
    assert answers[0].elapsed.total_seconds() < 25
    assert len(gateway.gateway.streams) == 0


def test_events_are_continued_from_every_number(gateway: GatewayThread, pump: Pump) -> None:
    turn_id = submit(gateway)
    pump.finish(pump.client.handle(turn_id))
    url = f"/v1/turns/{turn_id}/events"
    whole = gateway.http.get(url)
    assert whole.headers["content-type"].startswith("text/event-stream")
    assert whole.headers["cache-control"] == "no-store"
    events = read(whole.content)
    assert events == [event.model_dump(mode="json") for event in pump.client.handle(turn_id).events()]
    for seen in range(1, len(events)):
        by_header = gateway.http.get(url, headers={"Last-Event-ID": str(seen)}, params={"after": 1})
        by_query = gateway.http.get(url, params={"after": seen})
        assert read(by_header.content) == read(by_query.content) == events[seen:]
    # An EventSource comes again after the end, too: 204 tells it not to.
    for beyond in (len(events), len(events) + 5):
        assert gateway.http.get(url, headers={"Last-Event-ID": str(beyond)}).status_code == 204
    for wrong in ("-1", "x", "9" * 30):
        problem(gateway.http.get(url, params={"after": wrong}), 422, "invalid-input")


def test_a_stream_is_live_and_beats_while_nothing_happens(gateways: Callable[..., GatewayThread], pump: Pump) -> None:
    gateway = gateways(heartbeat_s=0.05)
    turn_id = submit(gateway)
    reader = EventReader()
    with gateway.http.stream("GET", f"/v1/turns/{turn_id}/events") as stream:
        pieces = stream.iter_raw()
        while not reader.comments:
            reader.feed(next(pieces))
        assert [event["kind"] for event in reader.events] == ["turn.active"]
        pump.finish(pump.client.handle(turn_id))
        for piece in pieces:
            reader.feed(piece)
    assert reader.is_over
    wait_until(lambda: len(gateway.gateway.streams) == 0, "its place is free")


def test_a_reader_that_leaves_frees_its_place(gateway: GatewayThread) -> None:
    turn_id = submit(gateway)
    with gateway.http.stream("GET", f"/v1/turns/{turn_id}/events") as stream:
        pieces = stream.iter_raw()  # its end closes the stream
        next(pieces)
        assert len(gateway.gateway.streams) == 1
    wait_until(lambda: len(gateway.gateway.streams) == 0, "its place is free")


def test_a_gateway_that_stops_tells_its_streams_and_waits_to_come_again(
    gateways: Callable[..., GatewayThread], pump: Pump
) -> None:
    stopping, other = gateways(), gateways()
    turn_id = submit(stopping)
    reader = EventReader()
    answers: list[httpx.Response] = []
    ask = httpx.Client(base_url=stopping.url, timeout=30, verify=False)
    waiter = threading.Thread(
        target=lambda: answers.append(ask.get(f"/v1/turns/{turn_id}/result", headers={"Prefer": "wait=25"}))
    )
    with stopping.http.stream("GET", f"/v1/turns/{turn_id}/events") as stream:
        pieces = stream.iter_raw()
        reader.feed(next(pieces))
        waiter.start()
        wait_until(lambda: len(stopping.gateway.streams) == 2, "one streams, one waits")
        stopping.stop()
        for piece in pieces:
            reader.feed(piece)
    assert reader.retry_ms == RECONNECT_MS
    assert any("reconnect with" in comment for comment in reader.comments)
    waiter.join(30)
    ask.close()
    assert answers[0].status_code == 202
    stopping.stopped()
    with pytest.raises(httpx.ConnectError):
        stopping.http.get("/healthz")
    pump.finish(pump.client.handle(turn_id))
    rest = other.http.get(f"/v1/turns/{turn_id}/events", headers={"Last-Event-ID": reader.last_id})
    assert [event["seq"] for event in reader.events + read(rest.content)] == [
        event.seq for event in pump.client.handle(turn_id).events()
    ]


WRONG: list[tuple[Any, str]] = [
    ({"session_id": "s1"}, "user_message"),
    ({"session_id": "s 1", "user_message": "x"}, "session_id"),
    ({"session_id": "s1", "user_message": "  "}, "user_message"),
    ({"session_id": "s1", "user_message": "x", "turn_id": "mine"}, "turn_id"),
    ({"session_id": "s1", "user_message": "x", "limits": {"max_steps": "3"}}, "limits.max_steps"),
    ({"session_id": "s1", "user_message": "x", "limits": {"steps": 3}}, "limits.steps"),
    ({"session_id": "s1", "user_message": "x", "on_busy": "shout"}, "on_busy"),
    ({"session_id": "s1", "user_message": "x", "priority": 5}, "priority"),
    ({"session_id": "s1", "user_message": "x", "output_schema": {"type": "nope"}}, "output_schema"),
    ([], "body"),
]


def test_a_wrong_field_is_named_before_anything_is_stored(gateway: GatewayThread, client: Client) -> None:
    for body, field in WRONG:
        assert problem(gateway.http.post("/v1/turns", json=body), 422, "invalid-input")["field"] == field
    assert client.session("s1").history() == ()


@pytest.fixture
def client(pump: Pump) -> Client:
    return pump.client


def test_what_is_no_json_or_no_route_is_a_problem_too(gateway: GatewayThread) -> None:
    json = {"Content-Type": "application/json"}
    for body in (b"{", b"\xff\xfe", b"[" * 100_000):
        problem(gateway.http.post("/v1/turns", content=body, headers=json), 400, "bad-json")
    # Without its type no body is read as JSON: a form of another site's page could send it.
    assert problem(gateway.http.post("/v1/turns", content=b"{}"), 422, "invalid-input")["field"] == "body"
    problem(gateway.http.get("/v1/nothing"), 404, "no-such-route")
    problem(gateway.http.put("/v1/turns", json={}), 405, "method-not-allowed")
    problem(gateway.http.get("/v1/turns/nobody/result"), 404, "not-found")
    problem(gateway.http.get("/v1/turns/a/result"), 422, "invalid-input")


def test_a_busy_session_says_which_turn_is_live(gateway: GatewayThread) -> None:
    live = submit(gateway)
    body = {"session_id": "s1", "user_message": "too", "on_busy": "reject"}
    assert problem(gateway.http.post("/v1/turns", json=body), 409, "session-busy")["live_turn_id"] == live
    joined = gateway.http.post("/v1/turns", json=body | {"on_busy": "steer"}).json()
    assert (joined["turn_id"], joined["receipt"]["state"]) == (live, "accepted")


def test_what_happens_next_is_said_in_one_sentence(gateway: GatewayThread, pump: Pump) -> None:
    turn_id, behind = submit(gateway, "save"), submit(gateway, "look")

    def said(of: str) -> str:
        told = gateway.http.get(f"/v1/turns/{of}/explain").json()
        assert (told["turn_id"], told["session_id"]) == (of, "s1")
        return told["next"]

    nobody = "; no coordinator worker is alive: `brainq worker coordinator` starts one"
    assert said(behind) == f"queued behind the live turn {turn_id} of its session{nobody}"
    pump.drain()
    assert said(turn_id) == "waits for a person's approval of c1-0 save"
    gateway.http.post(f"/v1/approvals/{turn_id}-c1-0/deny")
    pump.drain()
    assert said(turn_id) == "ended as completed (answered); nothing more happens"
    forget(pump)
    assert said(turn_id) == (
        "ended as completed; nothing more happens: it has expired in Redis, and SQL keeps its record"
    )
    problem(gateway.http.get("/v1/turns/nobodys-turn/explain"), 404, "not-found")


def test_who_leaves_while_he_waits_makes_room(gateways: Callable[..., GatewayThread], pump: Pump) -> None:
    gateway = gateways(streams=1, wait_s=600)
    turn_id = submit(gateway)  # nobody runs it: it would be waited for ten minutes
    wait = {"Prefer": "wait=600"}
    for method, path, body in (
        ("GET", f"/v1/turns/{turn_id}/result", None),
        ("POST", "/v1/turns", {"session_id": "s2", "user_message": "look"}),
    ):
        with pytest.raises(httpx.ReadTimeout):
            gateway.http.request(method, path, json=body, headers=wait, timeout=httpx.Timeout(5, read=0.2))
        wait_until(lambda: len(gateway.gateway.streams) == 0, "its place is free")


def test_a_turn_goes_on_in_its_requests_trace(gateway: GatewayThread, pump: Pump) -> None:
    """And the next request of the same connection in its own, or in none."""

    def kept(turn_id: str) -> str | None:
        request = pump.wiring.store.turns.request(turn_id)
        assert request is not None
        return request.traceparent

    trace, body = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", {"user_message": "look"}
    traced = gateway.http.post("/v1/turns", json={"session_id": "s1", **body}, headers={"traceparent": trace}).json()
    plain = gateway.http.post("/v1/turns", json={"session_id": "s2", **body}).json()
    wrong = gateway.http.post(
        "/v1/turns", json={"session_id": "s3", **body}, headers={"traceparent": "00-0-0-01"}
    ).json()
    assert [kept(one["turn_id"]) for one in (traced, plain, wrong)] == [trace, None, None]
