"""Access: the verb of each route, what a route receives, the middleware that admits requests, and the access log."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Annotated, cast
from urllib.parse import urlsplit

from fastapi import Depends, Path, Request
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from brainq.app.access import Caller, Verb
from brainq.client.async_handle import AsyncTurnHandle
from brainq.contracts.actor import acting_as
from brainq.contracts.ids import new_turn_id
from brainq.errors import BrainqError
from brainq.gateway.edge.authentication import LOCAL_CALLER
from brainq.gateway.edge.client_address import client_address, is_loopback
from brainq.gateway.edge.limits import closing_connection
from brainq.gateway.edge.problems import RequestRejected, bug_response, error_response
from brainq.gateway.edge.request import TURN_ID, Gateway, HttpRequest
from brainq.runtime.observe.logs import logger, request_log_ids
from brainq.runtime.observe.spans import set_parent_context
from brainq.runtime.processes.resources import is_shortage
from brainq.runtime.settings.http import split_list

AGENT_CARD_PATH = "/.well-known/agent-card.json"
"""The path suffix of every public A2A agent card."""
PUBLIC_PATHS = frozenset({"/", "/healthz", "/readyz", "/v1/openapi.json"})
PUBLIC_PREFIX = "/page/"
_AGENT_CARD = re.compile(rf"(/a2a/[^/]+)?{re.escape(AGENT_CARD_PATH)}")
VERBS: dict[str, Verb] = {
    "GET /v1/brains": Verb.READ,
    "GET /v1/caller": Verb.READ,
    "POST /v1/turns": Verb.SUBMIT,
    "GET /v1/turns": Verb.READ,
    "GET /v1/sessions": Verb.READ,
    "GET /v1/fleet": Verb.OPERATE,
    "GET /v1/fleet/activity": Verb.OPERATE,
    "GET /v1/cells": Verb.OPERATE,
    "GET /v1/scale": Verb.METRICS,
    "GET /v1/spend": Verb.READ,
    "GET /v1/budgets": Verb.READ,
    "PUT /v1/budgets": Verb.OPERATE,
    "POST /v1/budgets/raise": Verb.DECIDE,
    "GET /metrics": Verb.METRICS,
    "GET /v1/turns/{turn_id}": Verb.READ,
    "GET /v1/turns/{turn_id}/request": Verb.READ,
    "GET /v1/turns/{turn_id}/children": Verb.READ,
    "GET /v1/turns/{turn_id}/explain": Verb.READ,
    "GET /v1/turns/{turn_id}/result": Verb.READ,
    "GET /v1/turns/{turn_id}/timeline": Verb.READ,
    "GET /v1/turns/{turn_id}/decision": Verb.READ,
    "GET /v1/turns/{turn_id}/transcript": Verb.READ,
    "GET /v1/turns/{turn_id}/files/{sha256}": Verb.READ,
    "GET /v1/turns/{turn_id}/calls": Verb.READ,
    "GET /v1/turns/{turn_id}/events": Verb.READ,
    "POST /v1/turns/{turn_id}/input": Verb.STEER,
    "GET /v1/turns/{turn_id}/input/{client_message_id}": Verb.READ,
    "POST /v1/turns/{turn_id}/calls/{call_id}/result": Verb.STEER,
    "POST /v1/turns/{turn_id}/cancel": Verb.STEER,
    "GET /v1/turns/{turn_id}/holds": Verb.READ,
    "POST /v1/turns/{turn_id}/holds": Verb.STEER,
    "DELETE /v1/turns/{turn_id}/holds/{hold_id}": Verb.STEER,
    "GET /v1/turns/{turn_id}/approvals": Verb.READ,
    "POST /v1/turns/{turn_id}/finalizer/retry": Verb.OPERATE,
    "GET /v1/approvals": Verb.READ,
    "GET /v1/approvals/{approval_id}": Verb.READ,
    "POST /v1/approvals/{approval_id}/approve": Verb.DECIDE,
    "POST /v1/approvals/{approval_id}/deny": Verb.DECIDE,
    "POST /v1/approvals/{approval_id}/edit": Verb.DECIDE,
    "POST /v1/outside/{token}": Verb.DECIDE,
    "GET /v1/sessions/{session_id}": Verb.READ,
    "GET /v1/sessions/{session_id}/history": Verb.READ,
    "POST /v1/sessions/{session_id}/input": Verb.STEER,
    "POST /v1/sessions/{session_id}/pause": Verb.STEER,
    "POST /v1/sessions/{session_id}/resume": Verb.STEER,
    "POST /v1/sessions/{session_id}/interrupt": Verb.STEER,
    "DELETE /v1/sessions/{session_id}/waiting/{turn_id}": Verb.STEER,
    "POST /v1/sessions/{session_id}/flags": Verb.STEER,
    "DELETE /v1/sessions/{session_id}/flags/{flag_id}": Verb.STEER,
    "POST /v1/sessions/{session_id}/compact": Verb.SUBMIT,
    "POST /v1/schedules": Verb.SUBMIT,
    "GET /v1/schedules": Verb.READ,
    "GET /v1/schedules/{name}": Verb.READ,
    "POST /v1/schedules/{name}/pause": Verb.SUBMIT,
    "POST /v1/schedules/{name}/resume": Verb.SUBMIT,
    "DELETE /v1/schedules/{name}": Verb.SUBMIT,
    "GET /v1/versions": Verb.OPERATE,
    "POST /v1/versions/ramp": Verb.OPERATE,
    "POST /v1/versions/release": Verb.OPERATE,
    "GET /v1/audit": Verb.OPERATE,
    "POST /v1/bulk": Verb.OPERATE,
    "GET /v1/bulk/{bulk_id}": Verb.OPERATE,
    "DELETE /v1/bulk/{bulk_id}": Verb.OPERATE,
    "GET /v1/stops": Verb.OPERATE,
    "POST /v1/stops": Verb.OPERATE,
    "DELETE /v1/stops/{kind}/{stopped}": Verb.OPERATE,
    "GET /v1/memories": Verb.READ,
    "DELETE /v1/memories/{memory_id}": Verb.STEER,
    "DELETE /v1/memories": Verb.STEER,
    "GET /v1/webhooks/deliveries": Verb.OPERATE,
    "POST /v1/webhooks/deliveries/{delivery_id}/retry": Verb.OPERATE,
    "POST /v1/chat/completions": Verb.SUBMIT,
    "POST /v1/responses": Verb.SUBMIT,
    "GET /v1/responses/{response_id}": Verb.READ,
    "DELETE /v1/responses/{response_id}": Verb.STEER,
    "GET /v1/responses/{response_id}/input_items": Verb.READ,
    "POST /v1/responses/{response_id}/cancel": Verb.STEER,
    "GET /v1/models": Verb.READ,
    "GET /v1/models/{model}": Verb.READ,
}
"""The verb that each of the gateway's own routes needs. The verbs of a wire's routes are in its Wire."""
log = logger("brainq.gateway")
REQUEST_ID = "x-request-id"
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
SECURITY_HEADERS = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))


def is_public(path: str) -> bool:
    """Return whether this path needs no token because it shows no tenant's data."""
    # Match the whole path, because the route of outside tokens accepts any end.
    return path in PUBLIC_PATHS or path.startswith(PUBLIC_PREFIX) or _AGENT_CARD.fullmatch(path) is not None


# These functions are async although they await nothing: FastAPI would run plain functions in threads, which costs more.
async def current_gateway(http: Request) -> Gateway:
    return cast("Gateway", http.app.state.gateway)


async def current_request(http: Request) -> HttpRequest:
    """Return the request that a route answers. Raises RequestRejected if the caller lacks the route's verb."""
    verbs: dict[str, Verb] = http.app.state.verbs
    verb = verbs[f"{http.method} {http.scope['route'].path_format}"]
    request = HttpRequest(await current_gateway(http), cast("Caller", http.state.caller), verb, http)
    request.require_verb(verb)
    return request


GatewayDep = Annotated[Gateway, Depends(current_gateway)]
RequestDep = Annotated[HttpRequest, Depends(current_request)]


async def fleet_request(request: RequestDep) -> HttpRequest:
    """Return a request about more than single sessions. Raises NotFound if its caller does not have all of them."""
    request.require_session(None)
    return request


FleetDep = Annotated[HttpRequest, Depends(fleet_request)]


async def own_turn(turn_id: Annotated[str, Path(pattern=TURN_ID)], request: RequestDep) -> AsyncTurnHandle:
    return await request.own_turn(turn_id)


TurnDep = Annotated[AsyncTurnHandle, Depends(own_turn)]


class AccessMiddleware:
    """The middleware that checks host, origin, caller and rate. A request that passes has `caller` in its state.

    retried      the app that answers a rejected request whose retries must be recognized
    is_retried   a function that returns whether a rejected request is one of these
    """

    def __init__(
        self, app: ASGIApp, gateway: Gateway, retried: ASGIApp, is_retried: Callable[[Scope, Exception], bool]
    ) -> None:
        self._app = app
        self._retried = retried
        self._is_retried = is_retried
        self._gateway = gateway
        self._hosts = frozenset(host.lower() for host in split_list(gateway.settings.http_hosts))
        self._origins = frozenset(split_list(gateway.settings.http_cors))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        set_parent_context(headers.get("traceparent"))
        try:
            await self._admit(scope, headers)
        except (RequestRejected, BrainqError) as refusal:
            if "caller" in scope.get("state", {}) and self._is_retried(scope, refusal):
                scope["state"]["refusal"] = refusal
                await self._retried(scope, receive, send)
            else:
                await error_response(refusal)(scope, receive, send)
            return
        caller: Caller | None = scope.get("state", {}).get("caller")
        with acting_as("" if caller is None or caller is LOCAL_CALLER else caller.name, "http"):
            await self._app(scope, receive, send)

    async def _admit(self, scope: Scope, headers: Headers) -> None:
        if is_public(scope["path"]):
            return
        self._check_host(scope, headers.get("host", ""))
        self._check_origin(headers)
        rates = self._gateway.caller_rates
        caller = await rates.authenticate(client_address(scope), dict(headers.items()))
        scope.setdefault("state", {})["caller"] = caller
        rates.count(caller)

    def _check_host(self, scope: Scope, host: str) -> None:
        """Reject a host name that is not ours: another site can make its name point to this machine (DNS rebinding)."""
        name = _host_name(host)
        loopback_only = self._gateway.authenticator.is_loopback_only
        known = name in self._hosts if self._hosts else is_loopback(name) or not loopback_only
        address = client_address(scope)
        if loopback_only and address and not is_loopback(address):
            raise RequestRejected(
                "unauthorized", "no authentication is configured, so only loopback clients are served"
            )
        if not known:
            raise RequestRejected(
                "wrong-host", "this host name is not served; the operator may add it to BRAINQ_HTTP_HOSTS"
            )

    def _check_origin(self, headers: Headers) -> None:
        """Reject requests from pages of other origins.

        A request without an Origin header passes. It comes from a program, not from a page in a user's browser.
        """
        origin = headers.get("origin")
        if origin is None or origin in self._origins or _is_same_origin(origin, headers.get("host", "")):
            return
        raise RequestRejected(
            "foreign-origin", "pages of this origin are not served; the operator may add it to BRAINQ_HTTP_CORS"
        )


def _is_same_origin(origin: str, host: str) -> bool:
    try:
        return bool(host) and urlsplit(origin).netloc == host
    except ValueError:
        return False


def _host_name(host: str) -> str:
    """Return the `Host` header without its port."""
    if host.startswith("["):
        return host.partition("]")[0].lstrip("[").lower()
    return host.rpartition(":")[0].lower() if ":" in host else host.lower()


class RequestLogMiddleware:
    """The outermost middleware: it logs every request, and answers a bug with an id that is also in the log."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(Headers(scope=scope))
        with request_log_ids(request_id):
            await self._answer(scope, receive, send, request_id)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, request_id: str) -> None:
        began, status = time.monotonic(), 0

        async def send_noting_status(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(_with_headers(message, request_id))

        try:
            if _has_two_lengths(scope):
                refusal = RequestRejected("two-lengths", "send Content-Length or Transfer-Encoding, not both")
                await error_response(refusal)(scope, receive, closing_connection(send_noting_status))
            else:
                await self._app(scope, receive, send_noting_status)
        except ClientDisconnect:
            pass
        except Exception as failure:
            problem_id = new_turn_id()
            log.error("a request failed", failure=failure, problem_id=problem_id, route=_route_template(scope))
            if not status:
                await _failure_response(failure, problem_id)(scope, receive, send_noting_status)
        if not is_public(scope["path"]):
            took_ms = int((time.monotonic() - began) * 1000)
            caller = getattr(scope.get("state", {}).get("caller"), "name", "")
            log.info("answered", route=_route_template(scope), status=status, took_ms=took_ms, caller=repr(caller))


def _failure_response(failure: Exception, problem_id: str) -> Response:
    """Return the response to a failure. A shortage in this process is not reported as a bug, because another gateway
    may not have it."""
    if is_shortage(failure):
        return error_response(RequestRejected("short", "try again later, or at another gateway"))
    return bug_response(problem_id)


def _request_id(headers: Headers) -> str:
    """Return the id that the client or a proxy sent, or else a new one."""
    sent = headers.get(REQUEST_ID, "")
    return sent if _REQUEST_ID.fullmatch(sent) else new_turn_id()


def _with_headers(message: Message, request_id: str) -> Message:
    """Add the request id, and headers against caching and content sniffing unless the route has set them."""
    if message["type"] != "http.response.start":
        return message
    have = {name.lower() for name, _ in message["headers"]}
    more = [(name, value) for name, value in SECURITY_HEADERS if name not in have]
    more.append((REQUEST_ID.encode(), request_id.encode()))
    return {**message, "headers": [*message["headers"], *more]}


def _has_two_lengths(scope: Scope) -> bool:
    """Return whether the request has both Content-Length and Transfer-Encoding. A proxy could then see another end of
    the body and treat the rest as a new request."""
    headers = Headers(scope=scope)
    return "content-length" in headers and "transfer-encoding" in headers


def _route_template(scope: Scope) -> str:
    """Return the route's template. The path itself may contain an outside token, so it is not logged."""
    route = scope.get("route")
    return f"{scope['method']} {getattr(route, 'path', '(none)')}"
