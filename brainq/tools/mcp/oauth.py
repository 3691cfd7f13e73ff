"""What a worker shows an authorization server to get tokens for an MCP server."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from brainq.errors import InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class McpOAuth:
    """OAuth's client credentials: a program's own right, for which no person is asked.

    client_id, client_secret   as the authorization server gave them
    issuer    the authorization server's URL, as it names itself; what a server says of another one is not followed
    scope     what is asked for, separated by spaces; None: what the server says it needs

    Raises InvalidInput.
    """

    client_id: str
    client_secret: str = field(repr=False)
    issuer: str
    scope: str | None = None

    def __post_init__(self) -> None:
        for name, text in (("client_id", self.client_id), ("client_secret", self.client_secret)):
            if not text:
                raise InvalidInput(f"oauth.{name}", "it is empty; use what the authorization server gave you")
        parts = urlsplit(self.issuer)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidInput(
                "oauth.issuer", f"{self.issuer!r} is no URL; use such as https://auth.example.com"
            )
