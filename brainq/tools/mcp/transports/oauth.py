"""Tokens for a server over HTTP: fetched by the SDK's provider when the server asks for one, kept in memory alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass

import httpx2
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from brainq.tools.mcp.oauth import McpOAuth

FETCH_S = 30.0
"""How long each request for a token may take."""
UNAUTHORIZED, FORBIDDEN = 401, 403


@dataclass(eq=False, slots=True)
class _InMemory:
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
    """Adds the token to each request, and fetches one, alone, when the server refuses a request for lack of it.

    The SDK's provider holds its lock while the request itself runs, so that calls would run one after another. Here it
    runs only between a refusal and its new token. Requests that were refused meanwhile use that token, too.
    """

    def __init__(self, url: str, given: McpOAuth) -> None:
        self._provider = ClientCredentialsOAuthProvider(
            url, _InMemory(), given.client_id, given.client_secret, scope=given.scope, issuer=given.issuer
        )
        self._fetching = asyncio.Lock()

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
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
                        outgoing.extensions.setdefault("timeout", httpx2.Timeout(FETCH_S).as_dict())
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
