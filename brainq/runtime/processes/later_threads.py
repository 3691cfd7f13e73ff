"""The threads of a finalizer's process that do later work: steps after results, and judgements.

Later work may take a minute. Some threads are reserved for work that leads to results, so that results never wait for
it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

LEFT_FREE = 2
FIRST_LOOK_S, LAST_LOOK_S = 0.005, 1.0


class LaterThreads:
    """A count of the later work: messages from its lists, and visits that continued to it.

    A turn counts once. Until `follow` is called there is no limit, because the process reads no queues or uses another
    transport.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._most = 0
        self._messages: Mapping[str, tuple[str, float]] = {}
        self._visits: dict[str, float] = {}

    def follow(self, threads: int, messages: Mapping[str, tuple[str, float]]) -> None:
        """Use these `messages` of the lists of later work: tag -> (turn or message, since when)."""
        self._most = max(1, threads - LEFT_FREE) if threads else 0
        self._messages = messages

    def enter(self, turn_id: str) -> None:
        """Count a visit of the turn to later work."""
        self._visits.setdefault(turn_id, time.monotonic())

    def try_enter(self, turn_id: str) -> bool:
        """Count a visit if a thread is left for it, and return whether that is so."""
        with self._lock:
            if not self.free:
                return False
            self.enter(turn_id)
            return True

    def leave(self, turn_id: str) -> None:
        """Note that the visit is over."""
        self._visits.pop(turn_id, None)

    @property
    def free(self) -> int:
        """Return how many more threads may do later work."""
        if not self._most:
            return 1 << 16
        return max(0, self._most - len(self._began()))

    def looks_again_s(self) -> float:
        """Return the seconds to wait if no thread is free: about as long as the newest work has already run."""
        newest = max(self._began().values(), default=0.0)
        return min(LAST_LOOK_S, max(FIRST_LOOK_S, time.monotonic() - newest))

    def _began(self) -> dict[str, float]:
        # These copies are made in one step, because other threads change both.
        return {**dict(list(self._messages.values())), **self._visits.copy()}


LATER_THREADS = LaterThreads()
"""The count of this process, whose single event loop reads the queues."""
