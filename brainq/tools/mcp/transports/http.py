"""Streamable HTTP, the SDK's, with bodies that end."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.client.streamable_http import streamable_http_client

from brainq.text.shorten import beginning
from brainq.tools.mcp.server import McpServer
from brainq.tools.mcp.transports.oauth import TokenAuth
from brainq.tools.mcp.transports.stdio import MAX_MESSAGE_BYTES

CONNECT_S = 30.0
MAX_WORDS = 300
NOT_SENT = 64_001
"""The code of an error of our own, outside the range of the protocol: no server took the request."""
_urls: set[str] = set()


class _NotOfServers(logging.Filter):
    """httpx tells every request with its URL, at INFO; a server's may hold a key."""

    def filter(self, record: logging.LogRecord) -> bool:
        said = record.getMessage()
        return not any(url in said for url in _urls)


logging.getLogger("httpx2").addFilter(_NotOfServers())


@asynccontextmanager
async def http_transport(server: McpServer) -> AsyncGenerator[Any]:
    """The streams of a session over HTTP. A read has no time of its own: the call's deadline ends it."""
    assert server.url is not None
    _urls.add(str(httpx2.URL(server.url)))
    async with (
        _Client(
            headers={"accept-encoding": "identity", **server.headers},
            timeout=httpx2.Timeout(CONNECT_S, read=None),
            transport=_Bounded(),
            auth=None if server.oauth is None else TokenAuth(server.url, server.oauth),
        ) as client,
        streamable_http_client(
            server.url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES
        ) as streams,
    ):
        yield streams


class _Client(httpx2.AsyncClient):
    """Answers a message that no server took by an error of its own.

    To the SDK such a failure is the end of the whole connection, and of all that is in flight on it.
    """

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            return await super().send(request, **options)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as failure:
            words = f"no connection could be made ({type(failure).__name__})"
        except OAuthFlowError as failure:  # the server refused the request, and will until there is a token
            words = beginning(" ".join(str(failure).split()), MAX_WORDS)
        error = {"jsonrpc": "2.0", "id": None, "error": {"code": NOT_SENT, "message": words}}
        body = json.dumps(error).encode()
        return httpx2.Response(
            503, headers={"content-type": "application/json"}, content=body, request=request
        )


class _Bounded(httpx2.AsyncHTTPTransport):
    """Cuts a body that is read whole; an event stream is bounded event by event."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            if response.headers.get("content-encoding", "identity") != "identity":
                raise httpx2.StreamError("the body is compressed, and nobody asked for that")
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _BoundedBody(response.stream)
        return response


class _BoundedBody(httpx2.AsyncByteStream):
    def __init__(self, body: httpx2.AsyncByteStream) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._body:
            size += len(chunk)
            if size > MAX_MESSAGE_BYTES:
                raise httpx2.StreamError(f"the body has more than {MAX_MESSAGE_BYTES} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._body.aclose()
