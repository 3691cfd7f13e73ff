"""Methods of routes: HEAD for whatever has GET, and which ones a path has."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from starlette.routing import Match, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
GONE: Message = {"type": "http.disconnect"}


class HeadAsGet:
    """Answers HEAD as GET without its body. A stream is over with its headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        got: Scope = {**scope, "method": "GET"}  # a copy: the server sends no body where its own says HEAD
        begun = asyncio.Event()

        async def received() -> Message:
            """What comes; once the headers are sent, the client wants no more."""
            incoming, over = asyncio.ensure_future(_message(receive)), asyncio.ensure_future(begun.wait())
            try:
                await asyncio.wait((incoming, over), return_when=asyncio.FIRST_COMPLETED)
                return GONE if begun.is_set() else incoming.result()
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
                scope["route"] = got["route"]  # which the log names


async def _message(receive: Receive) -> Message:
    return await receive()


def allowed(scope: Scope) -> list[str]:
    """The methods that this path has. Several routes may share it."""
    router: Router = scope["app"].router
    found = [method for method in METHODS if _has(router, {**scope, "method": method})]
    return ["HEAD", *found] if "GET" in found else found


def _has(router: Router, scope: Scope) -> bool:
    return any(route.matches(scope)[0] is Match.FULL for route in router.routes)
