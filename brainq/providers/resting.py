"""Whether a model that could not be had is worth asking again yet."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from brainq.providers.retry import Clock

MOST_DOUBLINGS = 20


@dataclass(eq=False)
class Rest:
    """A model rests after a failure: `first_s`, twice as long with each that follows, at most `longest_s`.

    After its rest one request tries it; others pass it by until that has come back, or for as long as it has rested.
    """

    first_s: float
    longest_s: float
    clock: Clock = time.monotonic
    failures: int = 0
    until: float = field(default=float("-inf"))
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def is_on(self) -> bool:
        with self._lock:
            return self.clock() < self.until

    def take(self) -> int | None:
        """Ask it now: what `failed` is told if that fails. None: it rests. Who is first after a rest tries it alone."""
        with self._lock:
            if self.clock() < self.until:
                return None
            if self.failures:
                self.until = self.clock() + self._rest_s()
            return self.failures

    def failed(self, taken: int, asked_s: float | None = None) -> None:
        """It could not be had. `asked_s` is how long the service wants to be left alone.

        Of several requests that were under way when it failed the first one counts.
        """
        with self._lock:
            if taken == self.failures:
                self.failures += 1
                self.until = self.clock() + max(self._rest_s(), asked_s or 0.0)

    def answered(self) -> None:
        with self._lock:
            self.failures, self.until = 0, float("-inf")

    def _rest_s(self) -> float:
        return min(self.longest_s, self.first_s * 2 ** min(self.failures - 1, MOST_DOUBLINGS))
