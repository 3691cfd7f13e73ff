"""Tokens for a server over HTTP: fetched by the SDK's provider when the server asks for one, kept in memory alone."""

from __future__ import annotations

from dataclasses import dataclass

from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from brainq.tools.mcp.oauth import McpOAuth


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


def oauth_of(url: str, given: McpOAuth) -> ClientCredentialsOAuthProvider:
    """Gets a token at the first refusal, and another one when it has expired."""
    return ClientCredentialsOAuthProvider(
        url,
        _InMemory(),
        given.client_id,
        given.client_secret,
        scope=given.scope,
        issuer=given.issuer,
    )
