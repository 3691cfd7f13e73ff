"""What a server was given in secret is taken out of what it says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

from brainq.tools.mcp.server import McpServer

MIN_CHARS = 6  # a shorter value, such as `1` or `true`, is no secret, and stands in many texts
HIDDEN = "[hidden]"
# A path or a mode in the environment is no secret, and results must be able to name it.
_SECRET_NAME = re.compile(r"key|token|secret|pass|credential|auth|private|dsn|cookie|session", re.IGNORECASE)


class Secrets:
    """The values that are hidden: of variables with a secret's name, of headers, and in the URL; longest first."""

    def __init__(self, values: Iterable[str]) -> None:
        self._values = sorted({value for value in values if len(value) >= MIN_CHARS}, key=len, reverse=True)

    @classmethod
    def of(cls, server: McpServer) -> Secrets:
        values = [value for name, value in server.env.items() if _SECRET_NAME.search(name)]
        values += server.headers.values()
        # `Bearer token`: what is echoed may be the token alone.
        values += [value.partition(" ")[2] for value in server.headers.values()]
        if server.oauth is not None:
            values.append(server.oauth.client_secret)
        if server.url is not None:
            parts = urlsplit(server.url)
            values += [parts.password or "", *(value for _, value in parse_qsl(parts.query))]
        return cls(values)

    def hide(self, text: str) -> str:
        for value in self._values:
            text = text.replace(value, HIDDEN)
        return text

    def hide_in(self, value: Any) -> Any:
        """A JSON value, with every text in it as `hide` has it."""
        if not self._values:
            return value
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, list):
            return [self.hide_in(item) for item in cast("list[Any]", value)]
        if isinstance(value, Mapping):
            inner = cast("Mapping[str, Any]", value)
            return {self.hide(key): self.hide_in(item) for key, item in inner.items()}
        return value
