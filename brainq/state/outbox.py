"""Where doorbells of a script wait when the broker is not the same Redis.

Transactional mode: the script itself puts the bell into the broker's list, and nothing is left to do.
Outbox mode: the script leaves the bell in the session's outbox; it is published right after the script. A crash
in between loses the bell, not the turn: the sweeper rings again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import redis

from brainq.observe.logs import logger
from brainq.state.keys import Keys

log = logger("brainq.state")


class Outbox:
    """What the state's operations flush after each script that may have rung. This one has nothing to publish: the
    doorbells are transactional."""

    def flush(self, session_id: str) -> None:
        return None


class PublishingOutbox(Outbox):
    """Takes what scripts left and hands it to the broker. `publish` gets a whole broker message as JSON."""

    def __init__(self, client: redis.Redis, keys: Keys, publish: Callable[[str], None]) -> None:
        self._client = client
        self._keys = keys
        self._publish = publish

    def flush(self, session_id: str) -> None:
        key = self._keys.of_session(session_id, "outbox")
        while bell := cast("str | None", self._client.lpop(key)):
            try:
                self._publish(bell)
            except Exception as failure:
                # The change it announces is committed: telling the caller it failed would be wrong. The bell is
                # lost, and the sweeper rings again.
                log.warning("doorbell not published", why=type(failure).__name__)
                return
