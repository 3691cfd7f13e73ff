"""Limits of one gateway: on open streams, and on the size and duration of bodies."""

from __future__ import annotations

import asyncio
from collections import Counter

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from brainq.gateway.edge.problems import RequestRejected, error_response


class StreamSlot:
    """A slot for one open stream or one waiting request. `stopping` is set when its holder must end."""

    def __init__(self, limiter: StreamLimiter, caller: str) -> None:
        self._limiter = limiter
        self.caller = caller
        self.stopping = asyncio.Event()

    def release(self) -> None:
        """Free the slot. Idempotent."""
        self._limiter.release(self)

    def __enter__(self) -> StreamSlot:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()


class StreamLimiter:
    """A limiter that grants at most `limit` slots at once, and at most `limit_a_caller` to one caller."""

    def __init__(self, limit: int, limit_a_caller: int) -> None:
        self._limit = limit
        self._limit_a_caller = limit_a_caller
        self._open: set[StreamSlot] = set()
        self._by_caller: Counter[str] = Counter()
        self._is_stopping = False

    def __len__(self) -> int:
        return len(self._open)

    def enter(self, caller: str) -> StreamSlot:
        """Take a slot. Raises RequestRejected if none is free."""
        self.require_running()
        if self._by_caller[caller] >= self._limit_a_caller:
            raise RequestRejected(
                "too-many-streams",
                f"this caller has {self._limit_a_caller} open streams and waits, which is the limit; close one, then "
                "try again",
            )
        if len(self._open) >= self._limit:
            raise RequestRejected("streams-full", "try again later, or at another gateway")
        slot = StreamSlot(self, caller)
        self._open.add(slot)
        self._by_caller[caller] += 1
        return slot

    def require_running(self) -> None:
        """Raise RequestRejected if the gateway is stopping."""
        if self._is_stopping:
            raise RequestRejected("stopping", "the gateway is stopping; try again to reach another one")

    def release(self, slot: StreamSlot) -> None:
        if slot not in self._open:
            return
        self._open.remove(slot)
        self._by_caller[slot.caller] -= 1
        if not self._by_caller[slot.caller]:
            del self._by_caller[slot.caller]

    def stop(self) -> None:
        """End every open stream, and refuse new ones."""
        self._is_stopping = True
        for slot in self._open:
            slot.stopping.set()


class BodyLimitMiddleware:
    """The middleware that rejects a body which is larger than `max_bytes` or takes longer than `within_s` to arrive.

    It reads the body before the route begins, so a slow one occupies nothing else.
    """

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
            await self._app(scope, replay_body(body, receive), send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes | None:
        """Return the whole body, or None if the client disconnected."""
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


def replay_body(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that yields a body which was already read, and then whatever follows it."""
    is_replayed = False

    async def replay() -> Message:
        nonlocal is_replayed
        if is_replayed:
            return await receive()
        is_replayed = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def closing_connection(send: Send) -> Send:
    """Return a `send` that closes the connection, since the rest of the body would be read as the next request."""

    async def last(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], (b"connection", b"close")]
        await send(message)

    return last
