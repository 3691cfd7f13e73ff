"""Keys of requests that have none: a client's own retry is matched to its request, whichever gateway it reaches."""

from __future__ import annotations

from typing import Any

from brainq.adapters.redis.script_methods import Parameter, script
from brainq.adapters.redis.scripts import Scripts
from brainq.contracts.ids import new_turn_id
from brainq.contracts.status import RequestTryEnd

REQUEST_KEPT_S = 900
MAX_TRACKED_REQUESTS = 256
"""The number of requests with the same content that are remembered at once."""


class RedisRequestKeys:
    """The requests that clients sent without a key, grouped by content. Each has its newest try and its outcome."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts
        self._client: Any = scripts.client
        self._keys = scripts.keys

    def begin(self, digest: str, number: int, *, is_refused: bool = False, older: str = "") -> str:
        """Return the key of the request to which this try belongs.

        number       the client's number of the try, from 0
        is_refused   the try is refused in any case
        older        the digest of the content in the previous release
        """
        known = self._client.get(self._keys.asked(older)) if number and older else None
        return self._begin(digest, new_turn_id(), number, "refused" if is_refused else "open", known or "")

    @script("request_try", keep_ms=REQUEST_KEPT_S * 1000, most=MAX_TRACKED_REQUESTS, KEY=str)
    def _begin(self, digest: str, key: str, number: int, state: str, older: str) -> str: ...

    @script("request_tried", state=Parameter("how"))
    def end(self, digest: str, key: str, number: int, how: RequestTryEnd) -> None:
        """Record how a try ended. Does nothing if the request was tried again since."""
        ...
