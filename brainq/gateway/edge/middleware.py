"""Middleware that every request passes: log and request id, access, rate, size and speed of bodies, and HEAD."""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.routing import Match, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from brainq.access import Caller
from brainq.contracts.ids import new_turn_id
from brainq.errors import BrainqError
from brainq.gateway.edge.authentication import is_loopback
from brainq.gateway.edge.limits import RateLimiter, address_key
from brainq.gateway.edge.problems import RequestRejected, bug_response, error_response
from brainq.gateway.edge.request import Gateway
from brainq.gateway.edge.verbs import is_public
from brainq.observe.logs import logger, request_log_ids
from brainq.observe.spans import set_parent_context
from brainq.settings.http import split_list


class BodyLimitMiddleware:
    """Rejects a body that is larger than `max_bytes`, or takes longer than `within_s`. It is read before the route
    begins, so that a slow one holds nothing."""

    def __init__(self, app: ASGIApp, max_bytes: int, within_s: float) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._within_s = within_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _has_body(scope):
            await self._app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(self._within_s):
                body = await self._read(scope, receive)
        except TimeoutError:
            refusal = RequestRejected("body-too-slow", f"send it within {self._within_s:g} s")
            await error_response(refusal)(scope, receive, closing_connection(send))
            return
        except RequestRejected as refusal:
            await error_response(refusal)(scope, receive, closing_connection(send))
            return
        if body is not None:
            await self._app(scope, _replay_body(body, receive), send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes | None:
        """The whole body; None when the client disconnected."""
        declared = Headers(scope=scope).get("content-length", "0")
        if declared.isdigit() and int(declared) > self._max_bytes:
            raise self._too_large()
        parts: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._max_bytes:
                raise self._too_large()
            if not message.get("more_body", False):
                return b"".join(parts)

    def _too_large(self) -> RequestRejected:
        return RequestRejected(
            "body-too-large", f"a body has at most {self._max_bytes:,} bytes; send less, or a reference to the rest"
        )


def _has_body(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    return "content-length" in headers or "transfer-encoding" in headers


def _replay_body(body: bytes, receive: Receive) -> Receive:
    is_replayed = False

    async def replay() -> Message:
        nonlocal is_replayed
        if is_replayed:
            return await receive()
        is_replayed = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def closing_connection(send: Send) -> Send:
    """Closes the connection: the rest of the body would be read as the next request."""

    async def last(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], (b"connection", b"close")]
        await send(message)

    return last


METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
DISCONNECT: Message = {"type": "http.disconnect"}


class HeadMiddleware:
    """Answers HEAD as GET without its body. A stream is over with its headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        got: Scope = {**scope, "method": "GET"}  # a copy: the server drops the body where its own scope has HEAD
        begun = asyncio.Event()

        async def received() -> Message:
            """The next message. Once the headers are sent, it is a disconnect."""
            incoming, over = (asyncio.ensure_future(_receive_message(receive)), asyncio.ensure_future(begun.wait()))
            try:
                await asyncio.wait((incoming, over), return_when=asyncio.FIRST_COMPLETED)
                return DISCONNECT if begun.is_set() else incoming.result()
            finally:
                incoming.cancel()
                over.cancel()

        async def without_body(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
                begun.set()
            elif not message.get("more_body", False):
                await send({"type": "http.response.body", "body": b""})

        try:
            await self._app(got, received, without_body)
        finally:
            with suppress(KeyError):
                scope["route"] = got["route"]  # for the log


async def _receive_message(receive: Receive) -> Message:
    return await receive()


def allowed_methods(scope: Scope) -> list[str]:
    """The methods of this path. Several routes may share it."""
    router: Router = scope["app"].router
    found = [method for method in METHODS if _has_route(router, {**scope, "method": method})]
    return ["HEAD", *found] if "GET" in found else found


def _has_route(router: Router, scope: Scope) -> bool:
    return any(route.matches(scope)[0] is Match.FULL for route in router.routes)


log = logger("brainq.gateway")
REQUEST_ID = "x-request-id"
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
SECURITY_HEADERS = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))


class AccessMiddleware:
    """Checks host, origin, caller and rate. A request that passes has `caller` in its state.

    retried      answers, in place of the app, a rejected request whose retries must be recognized
    is_retried   whether a rejected request is one of these
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
        await self._app(scope, receive, send)

    async def _admit(self, scope: Scope, headers: Headers) -> None:
        if is_public(scope["path"]):
            return
        self._check_host(scope, headers.get("host", ""))
        self._check_origin(headers)
        address = (scope.get("client") or ("",))[0]
        caller = await self._caller(address, dict(headers.items()))
        scope.setdefault("state", {})["caller"] = caller
        self._count(self._gateway.caller_rate, caller.counted_as)

    async def _caller(self, address: str, headers: Mapping[str, str]) -> Caller:
        """Authenticates. Requests of unknown callers are counted by address first, for an invented token costs a query
        to SQL. A known caller is not rejected because of unknown ones at its address."""
        gateway, place = self._gateway, address_key(address)
        is_known = gateway.authenticator.is_known(headers)
        if not is_known:
            self._count(gateway.address_rate, place)
        caller = await gateway.authenticator.authenticate(headers)
        if caller is None:
            if is_known:
                self._count(gateway.address_rate, place)
            raise RequestRejected("unauthorized", "send `Authorization: Bearer TOKEN` with a token that is still valid")
        if not is_known:
            gateway.address_rate.give_back(place)
        return caller

    def _count(self, rate: RateLimiter, name: str) -> None:
        if wait_s := rate.take(name):
            raise RequestRejected(
                "too-many-requests",
                f"{self._gateway.settings.http_requests_s:g} requests a second are granted; try again later",
                retry_after_s=math.ceil(wait_s),
            )

    def _check_host(self, scope: Scope, host: str) -> None:
        """Another site can make its own name point to this machine (DNS rebinding); then the host name is wrong."""
        name = _host_name(host)
        loopback_only = self._gateway.authenticator.is_loopback_only
        known = name in self._hosts if self._hosts else is_loopback(name) or not loopback_only
        client = (scope.get("client") or ("127.0.0.1",))[0]
        if loopback_only and not is_loopback(client):
            raise RequestRejected(
                "unauthorized", "no authentication is configured, so only loopback clients are served"
            )
        if not known:
            raise RequestRejected(
                "wrong-host", "this host name is not served; the operator may add it to BRAINQ_HTTP_HOSTS"
            )

    def _check_origin(self, headers: Headers) -> None:
        """Browsers send their page's origin. Programs send none, and carry no user's cookies or network to misuse."""
        origin = headers.get("origin")
        if origin is None or origin in self._origins or _is_same_origin(origin, headers.get("host", "")):
            return
        raise RequestRejected(
            "foreign-origin", "pages of this origin are not served; the operator may add it to BRAINQ_HTTP_CORS"
        )


class RequestLogMiddleware:
    """The outermost: every request is answered and logged. A bug is reported by an id, which is in the log, too."""

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
                await bug_response(problem_id)(scope, receive, send_noting_status)
        if not is_public(scope["path"]):
            took_ms = int((time.monotonic() - began) * 1000)
            caller = getattr(scope.get("state", {}).get("caller"), "name", "")
            log.info("answered", route=_route_template(scope), status=status, took_ms=took_ms, caller=repr(caller))


def _request_id(headers: Headers) -> str:
    """The id that the client or a proxy sent; else a new one."""
    sent = headers.get(REQUEST_ID, "")
    return sent if _REQUEST_ID.fullmatch(sent) else new_turn_id()


def _with_headers(message: Message, request_id: str) -> Message:
    """With headers against caching and content sniffing, where the route has none of its own, and the request id."""
    if message["type"] != "http.response.start":
        return message
    have = {name.lower() for name, _ in message["headers"]}
    more = [(name, value) for name, value in SECURITY_HEADERS if name not in have]
    more.append((REQUEST_ID.encode(), request_id.encode()))
    return {**message, "headers": [*message["headers"], *more]}


def _has_two_lengths(scope: Scope) -> bool:
    """Whether a proxy may have seen another end of this request: the rest would be taken for another client's."""
    headers = Headers(scope=scope)
    return "content-length" in headers and "transfer-encoding" in headers


def _route_template(scope: Scope) -> str:
    """The route's template, for the path may hold an outside token."""
    route = scope.get("route")
    return f"{scope['method']} {getattr(route, 'path', '(none)')}"


def _is_same_origin(origin: str, host: str) -> bool:
    try:
        return bool(host) and urlsplit(origin).netloc == host
    except ValueError:
        return False


def _host_name(host: str) -> str:
    """`Host` without its port."""
    if host.startswith("["):
        return host.partition("]")[0].lstrip("[").lower()
    return host.rpartition(":")[0].lower() if ":" in host else host.lower()
