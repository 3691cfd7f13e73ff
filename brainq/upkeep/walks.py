"""Walks over SQL's rows that compare them with Redis: turns that Redis does not know are queued again."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from brainq.contracts.fleet import ComparedPage
from brainq.errors import SessionBusy
from brainq.observe.logs import logger
from brainq.people.admission import Admission
from brainq.ports.redis_turns import SweepIndex
from brainq.ports.sql import TurnRows

# Walking SQL's rows to compare them with Redis: those that are new each time, the older ones page by page.

VISIBLE_AFTER_S = 60.0  # on Postgres a row may be seen this long after a higher one


class RowWalk:
    """One table's walk. `heal` compares the page of rows after the one it is given.

    What Redis knew once it knows as long as it keeps its data: old rows are compared all at once only when it may have
    lost some (`restart`), and one page each time besides.
    """

    def __init__(self, heal: Callable[[int], ComparedPage]) -> None:
        self._heal = heal
        self.restart()

    def restart(self) -> None:
        """Compare every row anew."""
        self._settled = 0  # up to here all rows have been compared, and no other can come in sight
        self._reached = 0
        self._ends: deque[tuple[float, int]] = deque()  # when the walk came to the last row, and which that was
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
        while self._ends[0][0] <= began - VISIBLE_AFTER_S:
            self._settled = self._ends.popleft()[1]
        self._reached = self._settled
        if self._old < self._settled:
            page = self._heal(self._old)
            self._old = page.last_row if page.more else 0
            healed += page.healed
        else:
            self._old = 0
        return healed


# Comparing SQL with Redis: accepted turns that Redis does not know are queued, in row order.

log = logger("brainq.upkeep")

PAGE = 500


class Comparer:
    """Finds turns between their SQL row and Redis: a producer died there, or Redis lost them, or only lost
    their place in the index, so that nobody would look at them."""

    def __init__(self, *, index: SweepIndex, accepted: TurnRows, admission: Admission) -> None:
        self._index = index
        self._accepted = accepted
        self._admission = admission
        self._rebuilt: set[str] = set()

    def compare(self, after_row: int) -> ComparedPage:
        """Queue what Redis does not know of the page of rows after this one."""
        rows = self._accepted.unended(after_row, PAGE)
        standing = self._index.standing([(row.session_id, row.turn_id) for row in rows])
        queued, unlisted = 0, list[tuple[str, str]]()
        for row, word in zip(rows, standing, strict=True):
            if word == "unlisted":
                unlisted.append((row.session_id, row.turn_id))
            if word != "unknown":
                continue
            try:
                if self._admit(row.turn_id, waits=row.session_id in self._rebuilt):
                    queued += 1
                    self._rebuilt.add(row.session_id)
            except Exception as failure:
                # One row that cannot be queued must not keep those after it from being queued.
                log.error("turn not queued from SQL", failure=failure, turn_id=row.turn_id)
        if unlisted:
            log.warning("turns that nobody would have looked at are looked at again", turns=len(unlisted))
            self._index.list_again(unlisted)
        more = len(rows) == PAGE
        if not more:
            self._rebuilt.clear()
        return ComparedPage(rows[-1].row if rows else after_row, more, queued + len(unlisted))

    def readmit(self, turn_id: str) -> bool:
        """Queue a turn that Redis does not know, if SQL waits for its end; False when nobody does.

        A turn that the index names and that is not there was lost by itself.
        """
        return self._accepted.result(turn_id) is None and self._admit(turn_id)

    def _admit(self, turn_id: str, *, waits: bool = False) -> bool:
        """`waits`: the session's queue is being rebuilt. What a turn did to the live one when it was submitted it
        must not do to those that this very rebuilding has queued before it."""
        request = self._accepted.request(turn_id)
        if request is None:
            return False
        if waits:
            request = request.model_copy(update={"on_busy": "enqueue"})
        try:
            self._admission.queue_again(request)
        except SessionBusy:
            return False  # its producer did not want it to wait, and is refused in SQL
        # Redis lost it, or its producer died, or is only slow: then there is nothing to warn of.
        log.info("turn queued from SQL", turn_id=turn_id)
        return True
