"""HTTP answers without a result: whether the request ran, and whether another session helps.

The HTTP status decides. The codes of JSON-RPC errors do not: the TypeScript SDK answers 404 with -32001 for an unknown
session, and -32001 is also the SDKs' code for a timeout. Sources: MCP specification 2025-06-18, "Transports" (404 to a
request with a session id: start a new session); python-sdk issues 1676 and 3556; TypeScript SDK `streamableHttp.ts`
(400 with -32000 and id null for a session that is not initialized).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, cast

NOT_SENT_CODE, SESSION_GONE_CODE, REFUSED_CODE, LOST_CODE, DOUBT_CODE = 64_001, 64_002, 64_003, 64_004, 64_005
"""Our own error codes, outside the protocol's range. In order: no server accepted the request; its session is gone, and
nothing ran; it was refused, and nothing ran; the connection was lost, and the call may have run; the call may have
run."""
HANDSHAKE = ("initialize", "server/discover")
_RESULT_TYPES = ("application/json", "text/event-stream")
_GONE = (404, 410)
_SESSION_ERRORS = (-32000, -32001, -32600)
"""The errors beside a 400 for an unknown session. -32000 and -32001 are free for servers."""
_MAY_HAVE_RUN = (408, 409, 460, 499)
"""The 4xx that proxies and servers also send when a request was on its way: timeouts and conflicts."""
_LOST = (502, 503, 504)


@dataclass(frozen=True, slots=True)
class RpcRequest:
    """A JSON-RPC request that expects an answer.

    has_session: whether it carried an `Mcp-Session-Id`.
    """

    id: object
    method: str
    has_session: bool


@dataclass(frozen=True, slots=True)
class RpcError:
    """The JSON-RPC error in a body. `id` is None if the server refused the request before it read the id."""

    id: object
    code: object
    message: str


@dataclass(frozen=True, slots=True)
class StandIn:
    """An error that replaces an answer."""

    code: int
    message: str

    def body(self) -> bytes:
        """Return it as JSON-RPC. The SDK adds the request's own id."""
        error = {"code": self.code, "message": self.message}
        return json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()


def read_request(content: bytes, *, has_session: bool) -> RpcRequest | None:
    """Return the request in a body, or None for a notification, a response and an empty body."""
    message = _json_object(content)
    if message is None or "id" not in message or not isinstance(message.get("method"), str):
        return None
    return RpcRequest(message["id"], message["method"], has_session)


def read_error(content: bytes) -> RpcError | None:
    """Return the JSON-RPC error in a body of any shape, or None."""
    message = _json_object(content)
    error: Any = None if message is None else message.get("error")
    if message is None or not isinstance(error, Mapping):
        return None
    fields = cast("Mapping[str, Any]", error)
    return RpcError(message.get("id"), fields.get("code"), str(fields.get("message") or ""))


def is_result(status: int, content_type: str) -> bool:
    """Return whether the body may hold an answer to a request."""
    media_type = content_type.partition(";")[0].strip().lower()
    return 200 <= status < 300 and status != HTTPStatus.ACCEPTED and media_type in _RESULT_TYPES


def stand_in(request: RpcRequest, status: int, error: RpcError | None) -> StandIn | None:
    """Return the replacement for an answer without a result, or None if the SDK should read it: a redirect, or the
    server's error for this very request."""
    if 300 <= status < 400:
        return None
    is_own = error is not None and error.id == request.id and error.id is not None
    session_lost = error is None or not is_own or error.code in _SESSION_ERRORS
    if request.has_session and (status in _GONE or (status == HTTPStatus.BAD_REQUEST and session_lost)):
        return StandIn(SESSION_GONE_CODE, f"it does not know the session any more ({_status_text(status)})")
    if error is not None and (is_own or request.method in HANDSHAKE):
        return None
    words = _status_text(status) + (f": {error.message}" if error is not None and error.message else "")
    if 400 <= status < 500 and status not in _MAY_HAVE_RUN:
        return StandIn(REFUSED_CODE, words)
    return StandIn(LOST_CODE if status in _LOST else DOUBT_CODE, words)


def _status_text(status: int) -> str:
    try:
        return f"HTTP {status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"HTTP {status}"


def _json_object(content: bytes) -> dict[str, Any] | None:
    try:
        message: Any = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", message) if isinstance(message, dict) else None
