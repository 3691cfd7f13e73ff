"""Retries of official clients, which send the number of a retry but not the request that it belongs to.

Redis records when each try begins and how it ends, also if it is refused. A retry can then be matched to its request
even if other requests have the same content. Requests with an `Idempotency-Key` need none of this.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from brainq.app.access import Caller
from brainq.contracts.ids import new_turn_id
from brainq.contracts.status import RequestTryEnd
from brainq.errors import BrainqError
from brainq.gateway.edge.problems import RequestRejected, error_response
from brainq.gateway.edge.request import Gateway, HttpRequest, read_idempotency_key
from brainq.gateway.wires.openai.errors import client_retries
from brainq.gateway.wires.openai.parameters import SESSION_HEADER
from brainq.runtime.observe.logs import logger

log = logger("brainq.gateway")
RETRY_COUNT_HEADER = "x-stainless-retry-count"
PATHS = frozenset({"/v1/chat/completions", "/v1/responses"})
MAX_TRIES = 100


@dataclass(frozen=True, slots=True)
class Try:
    """A try: the digest of its content, the key of its request, and its number, from 0."""

    digest: str
    key: str
    number: int


def try_number(scope: Scope) -> int | None:
    """Return the retry number that the client sent.

    Returns None if the client sent no number, or if it sent an Idempotency-Key.
    """
    if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] not in PATHS:
        return None
    headers = Headers(scope=scope)
    count = headers.get(RETRY_COUNT_HEADER, "")
    if "idempotency-key" in headers or not (count.isascii() and count.isdecimal()):
        return None
    return min(MAX_TRIES, int(count[:9]))


async def request_key(request: HttpRequest, body: dict[str, Any]) -> str:
    """Return the request's key. If the client sends only the number of the try, caller and content identify the
    request. Every request of other clients is new."""
    given = request.http.headers.get("idempotency-key")
    if given is None:
        number = try_number(request.http.scope)
        return new_turn_id() if number is None else await _begin_try(request, number, body)
    return read_idempotency_key(given)


async def _begin_try(request: HttpRequest, number: int, body: dict[str, Any]) -> str:
    """Record that a try began, and return the key of its request. RetryMiddleware records how it ends."""
    digest = try_digest(request.http.scope, request.caller, await request.http.body())
    older = json.dumps([request.caller.counted_as, request.http.url.path, body], sort_keys=True) if number else ""
    key = await request.client.begin_try(digest, number, older=older)
    request.http.state.tried = Try(digest, key, number)
    return key


def try_digest(scope: Scope, caller: Caller, body: bytes) -> str:
    """Return a digest of caller, path, session and body, which are the same for a retry."""
    session = Headers(scope=scope).get(SESSION_HEADER, "")
    prefix = json.dumps([caller.counted_as, scope["path"], session]).encode()
    return hashlib.sha256(prefix + b"\n" + body).hexdigest()


class RetryMiddleware:
    """The middleware that records how each try ended. It records a refusal before it sends it."""

    def __init__(self, app: ASGIApp, gateway: Gateway) -> None:
        self._app = app
        self._gateway = gateway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if try_number(scope) is None:
            await self._app(scope, receive, send)
            return
        state: MutableMapping[str, Any] = scope.setdefault("state", {})
        answer = AnswerWatch(receive, send)

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer.starts(message)
                if answer.end == "refused":
                    await self._note(state, "refused")
            await answer.send(message)

        try:
            await self._app(scope, answer.receive, noting)
        finally:
            if answer.end != "refused":
                await self._note(state, answer.end)

    async def _note(self, state: Mapping[str, Any], how: RequestTryEnd) -> None:
        tried: Try | None = state.get("tried")
        if tried is None:
            return
        try:
            await self._gateway.client.end_try(tried.digest, tried.key, tried.number, how)
        except BrainqError as failure:  # a retry will treat this try as unfinished
            log.warning("the end of a try was not recorded", failure=failure)


class AnswerWatch:
    """A watch over an answer while it is sent. `end` is how its try has ended so far."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._refusal: RequestTryEnd | None = None
        self._is_whole = False
        self._is_gone = False

    def starts(self, message: Message) -> None:
        status = int(message["status"])
        if status >= 400:
            self._refusal = "refused" if client_retries(status, message["headers"]) else "over"

    @property
    def end(self) -> RequestTryEnd:
        if self._is_gone:
            return "cut"
        return self._refusal or ("sent" if self._is_whole else "cut")

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.disconnect" and not self._is_whole:
            self._is_gone = True
        return message

    async def send(self, message: Message) -> None:
        await self._send(message)
        if message["type"] == "http.response.body" and not message.get("more_body"):
            self._is_whole = True


class RejectedTryApp:
    """The app that answers a refused request and records its try, so that the client's retry is recognized.

    Such a request reaches no route.
    """

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        number, refusal, caller = try_number(scope), scope["state"]["refusal"], scope["state"]["caller"]
        assert number is not None
        digest = try_digest(scope, caller, await Request(scope, receive).body())
        try:
            await self._gateway.client.begin_try(digest, number, is_refused=True)
        except BrainqError as failure:
            log.warning("a refused try was not recorded", failure=failure)
        await error_response(refusal)(scope, receive, send)


def is_rejected_try(scope: Scope, refusal: Exception) -> bool:
    """Return whether a refusal must be recorded, because its client is known and will retry."""
    return isinstance(refusal, RequestRejected) and refusal.kind.status == 429 and try_number(scope) is not None
