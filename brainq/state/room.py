"""The fleet's room: how large it is, and who waits for it. The scripts that begin, park and end turns do the rest."""

from __future__ import annotations

import json
from collections.abc import Mapping

from brainq.state.outbox import Outbox
from brainq.state.typed_scripts import Scripts

DAY_MS = 86_400_000
PLACES_AT_ONCE = 200
CAP_STANDS_MS = 60_000  # after it was told last: sweepers of two deployments tell different ones in turn


class RedisRoom:
    """Fits `ports.room.Room`."""

    def __init__(self, scripts: Scripts, outbox: Outbox, cap_stands_ms: int = CAP_STANDS_MS) -> None:
        self._run = scripts
        self._outbox = outbox
        self._cap_stands_ms = cap_stands_ms

    def keep(self, size: int, share: int, own: Mapping[str, int], caps: Mapping[str, int]) -> int:
        reply = self._run.room_keep(
            size=size,
            share=share,
            own=json.dumps(dict(own)),
            caps=json.dumps(dict(caps)),
            told_ms=self._cap_stands_ms,
            most=PLACES_AT_ONCE,
            keep_ms=DAY_MS,
        )
        for session_id in reply.asked:
            self._outbox.flush(session_id)
        return reply.live
