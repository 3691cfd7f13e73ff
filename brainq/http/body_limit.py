"""Bodies: how large, and how slow, they may be."""

from __future__ import annotations

import asyncio

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from brainq.http.problems import Refused, answer_of


class BodyLimit:
    """Refuses a body that is larger than `most_bytes`, or not there within `within_s`. It is read before a route
    begins, so that a slow one holds nothing."""

    def __init__(self, app: ASGIApp, most_bytes: int, within_s: float) -> None:
        self._app = app
        self._most_bytes = most_bytes
        self._within_s = within_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _has_body(scope):
            await self._app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(self._within_s):
                body = await self._read(scope, receive)
        except TimeoutError:
            refusal = Refused("body-too-slow", f"send it within {self._within_s:g} s")
            await answer_of(refusal)(scope, receive, last(send))
            return
        except Refused as refusal:
            await answer_of(refusal)(scope, receive, last(send))
            return
        if body is not None:
            await self._app(scope, _given(body, receive), send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes | None:
        """The whole body; None when the client went away."""
        said = Headers(scope=scope).get("content-length", "0")
        if said.isdigit() and int(said) > self._most_bytes:
            raise self._too_large()
        parts: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._most_bytes:
                raise self._too_large()
            if not message.get("more_body", False):
                return b"".join(parts)

    def _too_large(self) -> Refused:
        return Refused(
            "body-too-large",
            f"a body has at most {self._most_bytes:,} bytes here; send less, or where to find the rest",
        )


def _has_body(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    return "content-length" in headers or "transfer-encoding" in headers


def _given(body: bytes, receive: Receive) -> Receive:
    is_given = False

    async def given() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return given


def last(send: Send) -> Send:
    """The connection is closed: what is left of the body would be taken for the next request."""

    async def last(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], (b"connection", b"close")]
        await send(message)

    return last
