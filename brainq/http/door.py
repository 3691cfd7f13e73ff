"""The door: what every request passes before a route sees it, and what becomes of one that nobody expected."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from brainq.access import Caller
from brainq.contracts.ids import new_turn_id
from brainq.errors import BrainqError
from brainq.http.body_limit import last
from brainq.http.gateway import Gateway
from brainq.http.openai.tries import is_noted
from brainq.http.problems import Refused, answer_of, bug
from brainq.http.rate import Rate, counted_address
from brainq.http.verbs import is_public
from brainq.http.who import is_loopback
from brainq.http_settings import listed
from brainq.observe.log_ids import answering
from brainq.observe.logs import logger
from brainq.observe.submits import came_with

log = logger("brainq.http")
REQUEST_ID = "x-request-id"
_GIVEN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)

GUARDS = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))


class Door:
    """Host, origin, who asks, how often. What it lets through has `caller` in its state.

    refused   answers a request that is refused and is to be noted, in place of the app
    """

    def __init__(self, app: ASGIApp, gateway: Gateway, refused: ASGIApp) -> None:
        self._app = app
        self._refused = refused
        self._gateway = gateway
        self._hosts = frozenset(host.lower() for host in listed(gateway.settings.http_hosts))
        self._origins = frozenset(listed(gateway.settings.http_cors))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        came_with(headers.get("traceparent"))
        try:
            await self._admit(scope, headers)
        except (Refused, BrainqError) as refusal:
            if "caller" in scope.get("state", {}) and is_noted(scope, refusal):
                scope["state"]["refusal"] = refusal
                await self._refused(scope, receive, send)
            else:
                await answer_of(refusal)(scope, receive, send)
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
        self._count(self._gateway.callers, caller.counted_as)

    async def _caller(self, address: str, headers: Mapping[str, str]) -> Caller:
        """Who asks. A stranger's request is counted for his address before anybody is asked who he is: an invented
        token costs a question to SQL. Who was let in before is not kept out by the strangers of his address."""
        gateway, place = self._gateway, counted_address(address)
        is_known = gateway.who.is_known(headers)
        if not is_known:
            self._count(gateway.strangers, place)
        caller = await gateway.who.authenticate(headers)
        if caller is None:
            if is_known:
                self._count(gateway.strangers, place)
            raise Refused(
                "unauthorized", "send `Authorization: Bearer TOKEN` with a token that is still good"
            )
        if not is_known:
            gateway.strangers.give_back(place)
        return caller

    def _count(self, rate: Rate, name: str) -> None:
        if wait_s := rate.take(name):
            raise Refused(
                "too-many-requests",
                f"{self._gateway.settings.http_requests_s:g} requests a second are granted; ask again later",
                retry_after_s=math.ceil(wait_s),
            )

    def _check_host(self, scope: Scope, host: str) -> None:
        """A page elsewhere can make its own name point to this machine: then the name it asks for tells."""
        name = _name_of(host)
        is_open = self._gateway.who.is_open
        known = name in self._hosts if self._hosts else is_loopback(name) or not is_open
        client = (scope.get("client") or ("127.0.0.1",))[0]
        if is_open and not is_loopback(client):
            raise Refused("unauthorized", "it asks nobody who he is, and thus serves this machine alone")
        if not known:
            raise Refused(
                "wrong-host",
                "this host name is not served here; its operator may name it in BRAINQ_HTTP_HOSTS",
            )

    def _check_origin(self, headers: Headers) -> None:
        """Browsers say whose page asks. Programs say nothing, and have no cookie or network of somebody's to misuse."""
        origin = headers.get("origin")
        if origin is None or origin in self._origins or _is_of(origin, headers.get("host", "")):
            return
        raise Refused(
            "foreign-origin", "pages of this origin may not ask; its operator may name it in BRAINQ_HTTP_CORS"
        )


class Answered:
    """The outermost: every request is answered and logged. A bug is told by an id, which its line of the log has."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(Headers(scope=scope))
        with answering(request_id):
            await self._answer(scope, receive, send, request_id)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, request_id: str) -> None:
        began, status = time.monotonic(), 0

        async def noted(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(_guarded(message, request_id))

        try:
            if _has_two_lengths(scope):
                refusal = Refused("two-lengths", "send Content-Length or Transfer-Encoding, not both")
                await answer_of(refusal)(scope, receive, last(noted))
            else:
                await self._app(scope, receive, noted)
        except ClientDisconnect:
            pass
        except Exception as failure:
            problem_id = new_turn_id()
            log.error("a request failed", failure=failure, problem_id=problem_id, route=_route_of(scope))
            if not status:
                await bug(problem_id)(scope, receive, noted)
        if not is_public(scope["path"]):
            took_ms = int((time.monotonic() - began) * 1000)
            caller = getattr(scope.get("state", {}).get("caller"), "name", "")
            log.info("answered", route=_route_of(scope), status=status, took_ms=took_ms, caller=repr(caller))


def _request_id(headers: Headers) -> str:
    """The id that the client, or a proxy, gave the request; else a new one."""
    given = headers.get(REQUEST_ID, "")
    return given if _GIVEN_ID.fullmatch(given) else new_turn_id()


def _guarded(message: Message, request_id: str) -> Message:
    """With the headers that keep an answer from being kept, or taken for something else; a route may have its own."""
    if message["type"] != "http.response.start":
        return message
    have = {name.lower() for name, _ in message["headers"]}
    more = [(name, value) for name, value in GUARDS if name not in have]
    more.append((REQUEST_ID.encode(), request_id.encode()))
    return {**message, "headers": [*message["headers"], *more]}


def _has_two_lengths(scope: Scope) -> bool:
    """Whether a proxy before us may have seen another end of this request than we do: what follows would then be told
    as somebody else's."""
    headers = Headers(scope=scope)
    return "content-length" in headers and "transfer-encoding" in headers


def _route_of(scope: Scope) -> str:
    """The route's template: a path may hold a token of a call that waits."""
    route = scope.get("route")
    return f"{scope['method']} {getattr(route, 'path', '(none)')}"


def _is_of(origin: str, host: str) -> bool:
    try:
        return bool(host) and urlsplit(origin).netloc == host
    except ValueError:
        return False


def _name_of(host: str) -> str:
    """`Host` without its port."""
    if host.startswith("["):
        return host.partition("]")[0].lstrip("[").lower()
    return host.rpartition(":")[0].lower() if ":" in host else host.lower()
