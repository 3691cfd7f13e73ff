"""A server over HTTP that requires tokens, and the authorization server that issues them, made with the SDK."""

from __future__ import annotations

import asyncio
import base64
import threading
from typing import Any
from urllib.parse import parse_qs

from mcp.server import MCPServer
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp_types import ToolAnnotations
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from tests.support.mcp_servers.over_http import OverHttp

CLIENT, SECRET, SCOPE = "brainq-worker", "sk-of-the-client", "vault:read"


class Authorization(OverHttp):
    """The authorization server. `given` has its tokens; a token that is removed is no longer valid.

    headers: those of the requests.
    is_down: whether no token is issued.
    """

    def __init__(self) -> None:
        super().__init__()
        self.issuer = f"http://127.0.0.1:{self.port}/realm"
        self.given: list[str] = []
        self.is_down = False

    def app(self) -> Any:
        async def metadata(_request: Request) -> JSONResponse:
            return JSONResponse(
                {
                    "issuer": self.issuer,
                    "authorization_endpoint": f"{self.issuer}/authorize",
                    "token_endpoint": f"{self.issuer}/token",
                    "response_types_supported": ["code"],
                    "grant_types_supported": ["client_credentials"],
                    "token_endpoint_auth_methods_supported": ["client_secret_basic"],
                }
            )

        async def token(request: Request) -> JSONResponse:
            if self.is_down:
                return JSONResponse({"error": "temporarily_unavailable"}, 503)
            basic = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
            asked = parse_qs((await request.body()).decode())
            if request.headers.get("authorization") != f"Basic {basic}":
                return JSONResponse({"error": "invalid_client"}, 401)
            if asked["grant_type"] != ["client_credentials"] or asked.get("scope") != [SCOPE]:
                return JSONResponse({"error": "invalid_scope"}, 400)
            self.given.append(f"token-{len(self.given) + 1}")
            return JSONResponse(
                {"access_token": self.given[-1], "token_type": "Bearer", "expires_in": 3600, "scope": SCOPE}
            )

        return Starlette(
            routes=[
                Route("/.well-known/oauth-authorization-server/realm", metadata),
                Route("/realm/token", token, methods=["POST"]),
            ]
        )


class Vault(OverHttp):
    """A server with the tools `look` and `meet` (reads) and `put` (a change). It accepts only the newest token.

    meet: answers once three calls are in it.
    refuses_after: how many requests it accepts before it refuses a token once.
    """

    def __init__(self, authorization: Authorization) -> None:
        super().__init__()
        self.authorization = authorization
        self.refused: set[str] = set()
        self.refuses_after = self.refusals = 0
        self._refusing = asyncio.Condition()
        self.meeting = threading.Barrier(3, timeout=20)

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the access token, or None, as the SDK's TokenVerifier requires."""
        if token not in self.authorization.given or token in self.refused:
            async with self._refusing:
                self.refusals += 1
                self._refusing.notify_all()
                await self._refusing.wait_for(lambda: self.refusals >= self.refuses_after)
            return None
        return AccessToken(token=token, client_id=CLIENT, scopes=[SCOPE], resource=self.url)

    def app(self) -> Any:
        vault = MCPServer(
            "vault",
            token_verifier=self,
            auth=AuthSettings(
                issuer_url=AnyHttpUrl(self.authorization.issuer),
                resource_server_url=AnyHttpUrl(self.url),
                required_scopes=[SCOPE],
                validate_token_resource=True,
            ),
        )

        @vault.tool(annotations=ToolAnnotations(read_only_hint=True))
        def look() -> str:  # pyright: ignore[reportUnusedFunction]
            """Look into the vault."""
            return "gold"

        @vault.tool(annotations=ToolAnnotations(read_only_hint=True))
        def meet() -> str:  # pyright: ignore[reportUnusedFunction]
            """Meet two others in the vault."""
            self.meeting.wait()
            return "met"

        @vault.tool(annotations=ToolAnnotations(destructive_hint=False))
        def put(what: str) -> str:  # pyright: ignore[reportUnusedFunction]
            """Put something into the vault."""
            return f"{what} is kept"

        return vault.streamable_http_app()
