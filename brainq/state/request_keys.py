"""Keys of requests that brought none: a client's own retry of one is known again, whichever gateway it comes to."""

from __future__ import annotations

from typing import Any

from brainq.state.connection import Client
from brainq.state.keys import Keys

KEPT_S = 900


class RedisRequestKeys:
    def __init__(self, client: Client, keys: Keys) -> None:
        self._client: Any = client
        self._keys = keys

    def of(self, digest: str, key: str, *, is_retry: bool) -> str:
        """`key`, which is kept for KEPT_S; of a retry the one that was kept for what has the same digest, if any."""
        name = self._keys.asked(digest)
        self._client.set(name, key, ex=KEPT_S, nx=is_retry)
        return (self._client.get(name) or key) if is_retry else key
