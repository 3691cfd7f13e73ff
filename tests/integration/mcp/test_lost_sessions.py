"""Calls over HTTP whose server forgot the session, refused the request, or did not say what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from brainq.contracts.call import ToolFailure, ToolSuccess, ToolUnknown
from brainq.engine.calls.executor import BoundedToolExecutor
from tests.integration.mcp.test_http import calls_of
from tests.support.mcp_servers.forgetful import Answer, ForgetfulShop
from tests.support.wait import wait_until

THREADS = 32
NOT_FOUND = '{"jsonrpc": "2.0", "id": null, "error": {"code": -32001, "message": "Session not found"}}'
GONE = {
    "the TypeScript SDK's": Answer(404, NOT_FOUND),
    "with the request's id": Answer(404, NOT_FOUND.replace("null", "{id}")),
    "the Python SDK's": Answer(404, NOT_FOUND.replace("null", '"server-error"').replace("-32001", "-32600")),
    "connection closed": Answer(404, NOT_FOUND.replace("-32001", "-32000")),
    "method not found": Answer(404, NOT_FOUND.replace("-32001", "-32601").replace("null", "{id}")),
    "plain text": Answer(404, "session not found", "text/plain"),
    "a proxy's page": Answer(404, "<html><h1>404 Not Found</h1></html>", "text/html; charset=utf-8"),
    "JSON of another kind": Answer(404, '{"detail": "Not Found"}'),
    "half of a JSON": Answer(404, '{"jsonrpc"'),
    "nothing": Answer(404, "", ""),
    "gone": Answer(410, "", ""),
    "not initialized": Answer(400, NOT_FOUND.replace("-32001", "-32000").replace("Session not found", "No valid ID")),
    "bad request": Answer(400, "No valid session ID provided", "text/plain"),
}


@pytest.fixture
def shop() -> Iterator[ForgetfulShop]:
    with ForgetfulShop() as shop:
        yield shop


def test_a_change_is_made_once_in_a_new_session_whatever_the_body_says(
    executor: BoundedToolExecutor, shop: ForgetfulShop
) -> None:
    call = calls_of(executor, shop)
    assert isinstance(call("order", sku="first"), ToolSuccess)
    for kind, answer in GONE.items():
        shop.forget(answer)
        assert isinstance(ended := call("order", sku=kind), ToolSuccess), (kind, ended)
    assert Counter(shop.orders) == Counter(["first", *GONE])
    assert shop.refused == len(GONE)


def test_many_calls_that_find_the_session_gone_open_one_and_are_made_once(
    executor: BoundedToolExecutor, shop: ForgetfulShop
) -> None:
    call = calls_of(executor, shop)
    assert isinstance(call("price", sku="tea"), ToolSuccess)
    opened = len(shop.opened)
    shop.forget(GONE["the TypeScript SDK's"])
    with ThreadPoolExecutor(THREADS) as threads:
        ended = [one.result(60) for one in [threads.submit(call, "order", sku=str(n)) for n in range(THREADS)]]
    assert {type(one) for one in ended} == {ToolSuccess}
    assert Counter(shop.orders) == Counter(map(str, range(THREADS)))
    assert len(shop.opened) == opened + 1


def test_a_server_that_forgets_every_session_is_not_asked_for_ever(
    executor: BoundedToolExecutor, shop: ForgetfulShop
) -> None:
    call = calls_of(executor, shop)
    shop.refusal = GONE["plain text"]
    ended = call("order", sku="tea")
    assert isinstance(ended, ToolFailure)
    assert ended.retryable
    assert (shop.refused, shop.orders) == (3, [])


def test_a_session_that_is_gone_for_one_call_is_not_ended_under_another(
    executor: BoundedToolExecutor, shop: ForgetfulShop
) -> None:
    call = calls_of(executor, shop)
    shop.answers.clear()
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(call, "order", sku="first")
        wait_until(lambda: shop.orders == ["first"], "an order is in flight")
        shop.forget(GONE["nothing"])
        second = threads.submit(call, "order", sku="second")
        wait_until(lambda: shop.orders == ["first", "second"], "another one is in a new session")
        shop.answers.set()
        assert isinstance(first.result(60), ToolSuccess)
        assert isinstance(second.result(60), ToolSuccess)


INTERNAL = '{"jsonrpc": "2.0", "id": {id}, "error": {"code": -32603, "message": "it broke"}}'


ANSWERS = (
    (Answer(401, "", ""), ToolFailure),
    (Answer(403, "no", "text/plain"), ToolFailure),
    (Answer(405, "", ""), ToolFailure),
    (Answer(413, "<html>", "text/html"), ToolFailure),
    (Answer(429, '{"detail": "slow down"}'), ToolFailure),
    (Answer(200, INTERNAL.replace("-32603", "-32600")), ToolFailure),
    (Answer(202, "", ""), ToolUnknown),
    (Answer(200, "<html>Log in</html>", "text/html"), ToolUnknown),
    (Answer(204, "", ""), ToolUnknown),
    (Answer(200, "{"), ToolUnknown),
    (Answer(200, INTERNAL.replace("-32603", "-32001")), ToolUnknown),
    (Answer(408, "", ""), ToolUnknown),
    (Answer(500, "", ""), ToolUnknown),
    (Answer(500, INTERNAL), ToolUnknown),
    (Answer(502, "<html>", "text/html"), ToolUnknown),
    (Answer(503, NOT_FOUND), ToolUnknown),
    (Answer(504, "", ""), ToolUnknown),
)


def test_a_change_is_unknown_only_if_its_server_may_have_made_it(
    executor: BoundedToolExecutor, shop: ForgetfulShop
) -> None:
    call = calls_of(executor, shop)
    for number, (answer, kind) in enumerate(ANSWERS):
        shop.refusal = answer
        assert isinstance(ended := call("order", sku="tea"), kind), (answer, ended)
        assert shop.refused == number + 1  # what may have been done, or was refused, is not sent again
        shop.refusal = None
        assert isinstance(call("order", sku="pot"), ToolSuccess), answer
    assert set(shop.orders) == {"pot"}
