"""Streamable HTTP, the SDK's, with bodies that end, and the OAuth tokens that its requests carry."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from brainq.text.shorten import beginning
from brainq.tools.mcp.server import McpOAuth, McpServer
from brainq.tools.mcp.stdio_transport import MAX_MESSAGE_BYTES

TOKEN_FETCH_S = 30.0
"""How long each request for a token may take."""
CONNECT_S = 30.0
MAX_ERROR_CHARS = 300
NOT_SENT_CODE = 64_001
"""The code of an error of our own, outside the range of the protocol: no server took the request."""
_server_urls: set[str] = set()
UNAUTHORIZED, FORBIDDEN = 401, 403


@dataclass(eq=False, slots=True)
class _MemoryTokenStorage:
    """Fits the SDK's TokenStorage. A connection has one of its own."""

    tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return None  # the client is known beforehand

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        return None


class TokenAuth(httpx2.Auth):
    """Adds the token to each request, and fetches one when the server refuses a request for lack of it.

    The SDK's provider holds its lock while the request itself runs, so that calls would run one after another. Here it
    runs only between a refusal and its new token. Requests that were refused meanwhile use that token, too.
    """

    def __init__(self, url: str, oauth: McpOAuth) -> None:
        self._provider = ClientCredentialsOAuthProvider(
            url, _MemoryTokenStorage(), oauth.client_id, oauth.client_secret, scope=oauth.scope, issuer=oauth.issuer
        )
        self._fetching = asyncio.Lock()

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        token = self._add_token(request)
        response = yield request
        if response.status_code not in (UNAUTHORIZED, FORBIDDEN):
            return
        async with self._fetching:
            flow = self._provider.async_auth_flow(request)
            try:
                outgoing = await anext(flow)
                is_answered = False
                while outgoing is not request or (not is_answered and self._token() in (None, token)):
                    if outgoing is request:
                        is_answered = True
                        outgoing = await flow.asend(response)
                    else:
                        outgoing.extensions.setdefault("timeout", httpx2.Timeout(TOKEN_FETCH_S).as_dict())
                        answer = yield outgoing
                        outgoing = await flow.asend(answer)
            except StopAsyncIteration:  # such as a 403 that no other token would change
                return
            finally:
                await flow.aclose()
        self._add_token(request)
        yield request

    def _add_token(self, request: httpx2.Request) -> str | None:
        token = self._token()
        if token is not None:
            request.headers["Authorization"] = f"Bearer {token}"
        return token

    def _token(self) -> str | None:
        """The token that has not expired."""
        context = self._provider.context
        if context.current_tokens is None or not context.is_token_valid():
            return None
        return context.current_tokens.access_token


class _ServerUrlFilter(logging.Filter):
    """httpx logs every request with its URL, at INFO; a server's may hold a key."""

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        return not any(url in text for url in _server_urls)


logging.getLogger("httpx2").addFilter(_ServerUrlFilter())


@asynccontextmanager
async def http_transport(server: McpServer) -> AsyncGenerator[Any]:
    """The streams of a session over HTTP. A read has no time of its own: the call's deadline ends it."""
    assert server.url is not None
    _server_urls.add(str(httpx2.URL(server.url)))
    async with (
        _HttpClient(
            headers={"accept-encoding": "identity", **server.headers},
            timeout=httpx2.Timeout(CONNECT_S, read=None),
            transport=_BoundedTransport(),
            auth=None if server.oauth is None else TokenAuth(server.url, server.oauth),
        ) as client,
        streamable_http_client(server.url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES) as streams,
    ):
        yield streams


class _HttpClient(httpx2.AsyncClient):
    """Answers a message that no server took by an error of its own.

    To the SDK such a failure is the end of the whole connection, and of all that is in flight on it.
    """

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            return await super().send(request, **options)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as failure:
            words = f"no connection could be made ({type(failure).__name__})"
        except OAuthFlowError as failure:  # the server refused the request, and will until there is a token
            words = beginning(" ".join(str(failure).split()), MAX_ERROR_CHARS)
        error = {"jsonrpc": "2.0", "id": None, "error": {"code": NOT_SENT_CODE, "message": words}}
        body = json.dumps(error).encode()
        return httpx2.Response(503, headers={"content-type": "application/json"}, content=body, request=request)


class _BoundedTransport(httpx2.AsyncHTTPTransport):
    """Cuts a body that is read whole; an event stream is bounded event by event."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            if response.headers.get("content-encoding", "identity") != "identity":
                raise httpx2.StreamError("the body is compressed, though that was not accepted")
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
