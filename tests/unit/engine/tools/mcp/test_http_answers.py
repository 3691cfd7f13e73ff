"""What an HTTP answer without a result says about a request."""

from __future__ import annotations

import json

import pytest

from brainq.engine.tools.mcp.http_answers import (
    DOUBT_CODE,
    LOST_CODE,
    REFUSED_CODE,
    SESSION_GONE_CODE,
    RpcError,
    RpcRequest,
    is_result,
    read_error,
    read_request,
    stand_in,
)

CALL = RpcRequest(7, "tools/call", has_session=True)
ALONE = RpcRequest(7, "tools/call", has_session=False)
BODIES = [
    None,
    RpcError(None, -32001, "Session not found"),
    RpcError(7, -32001, "Session not found"),
    RpcError("server-error", -32600, ""),
    RpcError(7, -32601, "Method not found"),
    RpcError(None, "odd", ""),
]


@pytest.mark.parametrize("error", BODIES)
@pytest.mark.parametrize("status", [404, 410])
def test_a_404_to_a_session_says_that_the_session_is_gone_whatever_the_body(
    status: int, error: RpcError | None
) -> None:
    instead = stand_in(CALL, status, error)
    assert instead is not None
    assert instead.code == SESSION_GONE_CODE


@pytest.mark.parametrize(
    ("request_", "status", "error", "code"),
    [
        (CALL, 400, None, SESSION_GONE_CODE),
        (CALL, 400, RpcError(None, -32000, "No valid session ID"), SESSION_GONE_CODE),
        (CALL, 400, RpcError(7, -32000, "Server not initialized"), SESSION_GONE_CODE),
        (CALL, 400, RpcError(7, -32602, "wrong argument"), None),  # the server's word about this very request
        (CALL, 400, RpcError(7, -32603, "it broke"), None),
        (ALONE, 400, None, REFUSED_CODE),
        (ALONE, 404, None, REFUSED_CODE),
        (ALONE, 404, RpcError(None, -32001, ""), REFUSED_CODE),
        (ALONE, 404, RpcError(7, -32601, "Method not found"), None),
        *((CALL, status, None, REFUSED_CODE) for status in (401, 402, 403, 405, 406, 413, 415, 422, 429, 431)),
        *((CALL, status, None, DOUBT_CODE) for status in (200, 202, 204, 408, 409, 460, 499, 500, 507)),
        *((CALL, status, None, LOST_CODE) for status in (502, 503, 504)),
        (CALL, 503, RpcError(None, -32600, "no backend"), LOST_CODE),
        (CALL, 500, RpcError(7, -32603, "it broke"), None),
        (CALL, 307, None, None),
        (RpcRequest(1, "initialize", has_session=False), 400, RpcError(None, -32022, "another version"), None),
        (RpcRequest(1, "initialize", has_session=False), 401, None, REFUSED_CODE),
    ],
)
def test_what_a_status_says(request_: RpcRequest, status: int, error: RpcError | None, code: int | None) -> None:
    instead = stand_in(request_, status, error)
    assert (None if instead is None else instead.code) == code


def test_only_a_body_that_can_hold_an_answer_is_one() -> None:
    assert is_result(200, "application/json; charset=utf-8")
    assert is_result(200, "Text/Event-Stream")
    assert not is_result(202, "application/json")
    assert not is_result(200, "text/html")
    assert not is_result(200, "")
    assert not is_result(404, "application/json")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'{"error": "text"}', b"[" * 100_000, b"\xff"])
def test_a_body_of_any_shape_is_read(body: bytes) -> None:
    assert read_error(body) is None
    assert read_request(body, has_session=True) is None


def test_notifications_wait_for_no_answer() -> None:
    call = {"jsonrpc": "2.0", "id": 7, "method": "tools/call"}
    assert read_request(json.dumps(call).encode(), has_session=True) == CALL
    del call["id"]
    assert read_request(json.dumps(call).encode(), has_session=True) is None
