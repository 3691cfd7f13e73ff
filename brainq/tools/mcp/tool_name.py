"""The name by which a model calls a server's tool. Pure."""

from __future__ import annotations

import hashlib
import re

MAX_CHARS = 64  # of both vendors' names
SEPARATOR = "__"


def tool_name(server: str, tool: str) -> str:
    """`server__tool`, of letters, digits, _ and -, in 64 characters: a longer one keeps its beginning, and a digest."""
    name = f"{server}{SEPARATOR}{re.sub(r'[^A-Za-z0-9_-]', '_', tool)}"
    if len(name) <= MAX_CHARS:
        return name
    digest = hashlib.sha256(tool.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{name[: MAX_CHARS - len(digest) - 1]}_{digest}"
