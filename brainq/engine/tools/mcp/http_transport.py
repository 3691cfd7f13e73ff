"""The SDK's streamable HTTP with bounded bodies, and the OAuth tokens of its requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from brainq.engine.tools.mcp.http_answers import (
    DOUBT_CODE,
    LOST_CODE,
    NOT_SENT_CODE,
    RpcRequest,
    StandIn,
    is_result,
    read_error,
    read_request,
    stand_in,
)
from brainq.engine.tools.mcp.server import McpOAuth, McpServer
from brainq.engine.tools.mcp.stdio_transport import MAX_MESSAGE_BYTES
from brainq.runtime.text.shorten import beginning

TOKEN_FETCH_S = 30.0
"""How long each request for a token may take."""
CONNECT_S = 30.0
MAX_ERROR_CHARS = 300
_NEVER_SENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
    httpx2.LocalProtocolError,
)
_server_urls: set[str] = set()
UNAUTHORIZED, FORBIDDEN = 401, 403


@dataclass(eq=False, slots=True)
class _MemoryTokenStorage:
    """The SDK's TokenStorage in memory, one for each connection."""

    tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return None  # the client is registered beforehand

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        return None


class TokenAuth(httpx2.Auth):
    """An authentication that adds the token to each request, and fetches one if the server refuses a request without
    it.

    The SDK's provider holds its lock while the request itself runs, so calls would run one after another. Here the lock
    is held only between a refusal and its new token. Requests that were refused meanwhile use that token, too.
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
        """Return the token, if it has not expired."""
        context = self._provider.context
        if context.current_tokens is None or not context.is_token_valid():
            return None
        return context.current_tokens.access_token


class _ServerUrlFilter(logging.Filter):
    """A filter that drops httpx's log line of every request at INFO, because a server's URL may hold a key."""

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        return not any(url in text for url in _server_urls)


logging.getLogger("httpx2").addFilter(_ServerUrlFilter())


@asynccontextmanager
async def http_transport(server: McpServer) -> AsyncGenerator[Any]:
    """Yield the streams of a session over HTTP. A read has no separate time limit: the call's deadline ends it."""
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
    """A client that replaces a missing answer with an error that says what is known.

    For the SDK, a broken connection would end the whole session, and all its requests in flight.
    """

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            response = await super().send(request, **options)
            if request.method == "POST" and _is_json(response):  # the SDK reads an event stream, event by event
                await response.aread()
        except _NEVER_SENT as failure:
            return _answer(request, StandIn(NOT_SENT_CODE, f"no connection could be made ({type(failure).__name__})"))
        except OAuthFlowError as failure:  # the server refused the request, and will until there is a token
            words = beginning(" ".join(str(failure).split()), MAX_ERROR_CHARS)
            return _answer(request, StandIn(NOT_SENT_CODE, words))
        except httpx2.StreamError as failure:
            return _answer(request, StandIn(DOUBT_CODE, str(failure)))
        except httpx2.TransportError as failure:
            return _answer(request, StandIn(LOST_CODE, f"the connection was lost ({type(failure).__name__})"))
        if request.method != "POST" or is_result(response.status_code, response.headers.get("content-type", "")):
            return response
        call = read_request(request.content, has_session=MCP_SESSION_ID in request.headers)
        return response if call is None else await _without_result(request, call, response)


async def _without_result(request: httpx2.Request, call: RpcRequest, response: httpx2.Response) -> httpx2.Response:
    """Return the response itself, or the error that replaces it. A replaced response is closed."""
    error = read_error(response.content) if _is_json(response) else None
    instead = stand_in(call, response.status_code, error)
    if instead is None:
        return response
    await response.aclose()
    return _answer(request, StandIn(instead.code, beginning(" ".join(instead.message.split()), MAX_ERROR_CHARS)))


def _is_json(response: httpx2.Response) -> bool:
    return response.headers.get("content-type", "").lower().startswith("application/json")


def _answer(request: httpx2.Request, error: StandIn) -> httpx2.Response:
    headers = {"content-type": "application/json"}
    return httpx2.Response(503, headers=headers, content=error.body(), request=request)


class _BoundedTransport(httpx2.AsyncHTTPTransport):
    """A transport that bounds a body that is read whole. An event stream is bounded event by event."""

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
