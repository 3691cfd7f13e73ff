"""How many threads of a finalizer's process do what comes after results: steps behind them, and judgements.

Those may take a minute. Some threads are left to what leads to results, so that these wait for none of it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

LEFT_FREE = 2
FIRST_LOOK_S, LAST_LOOK_S = 0.005, 1.0


class LaterThreads:
    """Counts them: messages that were taken from the lists of such work, and visits that went on to it.

    A turn counts once. Without `follow` nothing is bounded: its process reads no queues, or not by our transport.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._most = 0
        self._messages: Mapping[str, tuple[str, float]] = {}
        self._visits: dict[str, float] = {}

    def follow(self, threads: int, messages: Mapping[str, tuple[str, float]]) -> None:
        """`messages`: those that the process has of such lists, tag -> (turn or message, since when)."""
        self._most = max(1, threads - LEFT_FREE) if threads else 0
        self._messages = messages

    def enter(self, turn_id: str) -> None:
        """A visit of the turn is at such a step."""
        self._visits.setdefault(turn_id, time.monotonic())

    def try_enter(self, turn_id: str) -> bool:
        """The same, where a thread is left for it."""
        with self._lock:
            if not self.free:
                return False
            self.enter(turn_id)
            return True

    def leave(self, turn_id: str) -> None:
        """The visit is over, whatever it was at."""
        self._visits.pop(turn_id, None)

    @property
    def free(self) -> int:
        """How many threads more may do such work."""
        if not self._most:
            return 1 << 16
        return max(0, self._most - len(self._began()))

    def looks_again_s(self) -> float:
        """How long to wait where none is free: about as long as the newest has run by now."""
        newest = max(self._began().values(), default=0.0)
        return min(LAST_LOOK_S, max(FIRST_LOOK_S, time.monotonic() - newest))

    def _began(self) -> dict[str, float]:
        # Copies, made in one step: other threads change both.
        return {**dict(list(self._messages.values())), **self._visits.copy()}


LATER_THREADS = LaterThreads()
"""Of this process, which has one event loop that reads queues."""
