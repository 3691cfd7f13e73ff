"""The one factory of Redis clients."""

from __future__ import annotations

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

# redis-py 8 repeats a command up to ten times when a reply is lost. Our scripts may be run twice without harm,
# but only on purpose: whoever calls decides, because only the caller knows what the turn's lease still allows.
NO_BLIND_RETRY = 0
Client = redis.Redis

SOCKET_TIMEOUT_S = 10.0  # longer than the longest blocking read (events, 2 s)


def make_client(url: str, *, max_connections: int = 512) -> redis.Redis:
    """A client that decodes to str, never repeats a command by itself, and survives broken text."""
    pool = redis.BlockingConnectionPool.from_url(
        url,
        max_connections=max_connections,
        timeout=SOCKET_TIMEOUT_S,
        decode_responses=True,
        # A lone surrogate from a model's stream must not make a whole turn unstorable.
        encoding_errors="replace",
        socket_timeout=SOCKET_TIMEOUT_S,
        socket_connect_timeout=5.0,
        socket_keepalive=True,
        health_check_interval=30,
        retry=Retry(NoBackoff(), NO_BLIND_RETRY),
        client_name="brainq-state",
    )
    return redis.Redis(connection_pool=pool)
