"""Walking SQL's rows to compare them with Redis: those that are new each time, the older ones page by page."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from brainq.contracts.healed import HealedPage

IN_SIGHT_AFTER_S = 60.0  # on Postgres a row may be seen this long after a higher one


class RowWalk:
    """One table's walk. `heal` compares the page of rows after the one it is given.

    What Redis knew once it knows as long as it keeps its data: old rows are compared all at once only when it may have
    lost some (`restart`), and one page each time besides.
    """

    def __init__(self, heal: Callable[[int], HealedPage]) -> None:
        self._heal = heal
        self.restart()

    def restart(self) -> None:
        """Compare every row anew."""
        self._settled = 0  # up to here all rows have been compared, and no other can come in sight
        self._reached = 0
        self._ends: deque[tuple[float, int]] = (
            deque()
        )  # when the walk came to the last row, and which that was
        self._old = 0

    def walk(self, limit_s: float) -> int:
        """How much was healed. After `limit_s` the rest of the new rows is left to the next time."""
        began, healed = time.monotonic(), 0
        while True:
            page = self._heal(self._reached)
            self._reached = page.last_row
            healed += page.healed
            if not page.more:
                break
            if time.monotonic() - began > limit_s:
                return healed
        self._ends.append((began, self._reached))
        while self._ends[0][0] <= began - IN_SIGHT_AFTER_S:
            self._settled = self._ends.popleft()[1]
        self._reached = self._settled
        if self._old < self._settled:
            page = self._heal(self._old)
            self._old = page.last_row if page.more else 0
            healed += page.healed
        else:
            self._old = 0
        return healed
