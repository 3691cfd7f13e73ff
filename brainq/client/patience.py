"""How long somebody who follows a turn still waits: pure, on a monotonic clock that is handed in."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from brainq.errors import ResultTimeout


@dataclass(slots=True)
class Patience:
    """`timeout_s` is the whole wait, `idle_s` the longest silence in it; None: no limit."""

    turn_id: str
    timeout_s: float | None
    idle_s: float | None
    began: float
    _heard: float = field(init=False)

    def __post_init__(self) -> None:
        self._heard = self.began

    def heard(self, now: float) -> None:
        """An event came, and the silence begins anew."""
        self._heard = now

    def left_s(self, now: float) -> float:
        """Seconds until one of the two is over, never below 0; infinite without either."""
        ends = (
            math.inf if self.timeout_s is None else self.began + self.timeout_s,
            math.inf if self.idle_s is None else self._heard + self.idle_s,
        )
        return max(0.0, min(ends) - now)

    def check(self, now: float) -> None:
        """Raise ResultTimeout where one is over."""
        if self.timeout_s is not None and now >= self.began + self.timeout_s:
            raise ResultTimeout(
                f"turn {self.turn_id!r} has no result after {self.timeout_s:g} s; it goes on, ask again later"
            )
        if self.idle_s is not None and now >= self._heard + self.idle_s:
            raise ResultTimeout(f"turn {self.turn_id!r}: no event for {self.idle_s:g} s; it goes on")
