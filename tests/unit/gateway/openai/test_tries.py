"""Tries of a client's requests: which ones are noted, and how each ended."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.types import Message

from brainq.errors import Unreachable
from brainq.gateway.edge.problems import RequestRejected
from brainq.gateway.wires.openai.retries import MAX_TRIES, RetryMiddleware, Try, is_rejected_try, try_number

PATH = "/v1/responses"
TRY = Try("digest", "key", 1)


def scope(headers: dict[str, str], path: str = PATH, method: str = "POST") -> dict[str, Any]:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http", "method": method, "path": path, "headers": raw}


@pytest.mark.parametrize(
    ("given", "number"),
    [
        (scope({"x-stainless-retry-count": "0"}), 0),
        (scope({"x-stainless-retry-count": "2"}), 2),
        (scope({"x-stainless-retry-count": "9" * 30}), MAX_TRIES),
        (scope({"x-stainless-retry-count": "-1"}), None),
        (scope({"x-stainless-retry-count": "²"}), None),
        (scope({}), None),
        (scope({"x-stainless-retry-count": "1", "idempotency-key": "k"}), None),
        (scope({"x-stainless-retry-count": "1"}, "/v1/models"), None),
        (scope({"x-stainless-retry-count": "1"}, method="GET"), None),
    ],
)
def test_which_try_a_request_is(given: dict[str, Any], number: int | None) -> None:
    assert try_number(given) == number


def test_a_refusal_at_the_door_is_noted_where_it_comes_again() -> None:
    tries = scope({"x-stainless-retry-count": "0"})
    assert is_rejected_try(tries, RequestRejected("too-many-requests", ""))
    assert not is_rejected_try(tries, RequestRejected("forbidden", ""))
    assert not is_rejected_try(tries, Unreachable("away"))
    assert not is_rejected_try(scope({}), RequestRejected("too-many-requests", ""))


START: Message = {"type": "http.response.start", "status": 200, "headers": []}
MORE: Message = {"type": "http.response.body", "body": b"x", "more_body": True}
LAST: Message = {"type": "http.response.body", "body": b"x"}
GONE: Message = {"type": "http.disconnect"}


def error(status: int, **headers: str) -> Message:
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http.response.start", "status": status, "headers": raw}


CASES: list[tuple[str, list[Message], list[str]]] = [
    ("whole", [START, MORE, LAST], ["start", "body", "body", "sent"]),
    ("no end", [START, MORE], ["start", "body", "cut"]),
    ("the client left", [START, GONE, LAST], ["start", "body", "cut"]),
    ("the client left after it", [START, LAST, GONE], ["start", "body", "sent"]),
    ("the client left before it", [GONE, error(503), LAST], ["start", "body", "cut"]),
    ("nothing", [], ["cut"]),
    ("full", [error(429), LAST], ["refused", "start", "body"]),
    ("away", [error(503), LAST], ["refused", "start", "body"]),
    ("wrong", [error(400), LAST], ["start", "body", "over"]),
    ("failed", [error(500, x_should_retry="false"), LAST], ["start", "body", "over"]),
    ("busy", [error(409), LAST], ["start", "body", "over"]),
    ("busy for now", [error(409, x_should_retry="true"), LAST], ["refused", "start", "body"]),
]


@pytest.mark.parametrize(("messages", "seen"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_how_a_try_ends_and_that_a_refusal_is_noted_before_it_is_told(messages: list[Message], seen: list[str]) -> None:
    assert run(messages, begun=True) == seen


def test_what_no_route_began_is_not_noted() -> None:
    assert run([START, LAST], begun=False) == ["start", "body"]


def run(messages: list[Message], *, begun: bool) -> list[str]:
    seen: list[str] = []

    class Client:
        async def end_try(self, digest: str, key: str, number: int, how: str) -> None:
            assert (digest, key, number) == ("digest", "key", 1)
            seen.append(how)

    class Gateway:
        client = Client()

    async def app(inner: Any, receive: Any, send: Any) -> None:
        if begun:
            inner["state"]["tried"] = TRY
        for message in messages:
            await (receive() if message is GONE else send(message))

    async def receive() -> Message:
        return GONE

    async def send(message: Message) -> None:
        seen.append(message["type"].rpartition(".")[2])

    tries = RetryMiddleware(app, Gateway())  # pyright: ignore[reportArgumentType]
    asyncio.run(tries(scope({"x-stainless-retry-count": "1"}), receive, send))
    return seen
