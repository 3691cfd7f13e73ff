"""Comparing SQL with Redis: accepted turns that Redis does not know are queued, in row order."""

from __future__ import annotations

import time

from brainq.admission import Admission
from brainq.errors import SessionBusy
from brainq.observe.logs import logger
from brainq.ports.index import Index
from brainq.ports.turn_rows import TurnRows

log = logger("brainq.upkeep")

PAGE = 500
LIMIT_S = 1.0  # looks at lapsed leases wait meanwhile


class Comparer:
    """Finds turns between their SQL row and Redis: a producer died there, or Redis lost them."""

    def __init__(self, *, index: Index, accepted: TurnRows, admission: Admission) -> None:
        self._index = index
        self._accepted = accepted
        self._admission = admission
        self._after_row = 0
        self._rebuilt: set[str] = set()

    def compare(self, limit_s: float = LIMIT_S) -> int:
        """Queue what Redis does not know; how many that were. After `limit_s` the rest is left to the next time."""
        until = time.monotonic() + limit_s
        queued = 0
        while rows := self._accepted.unended(self._after_row, PAGE):
            known = self._index.known([(row.session_id, row.turn_id) for row in rows])
            for row, is_known in zip(rows, known, strict=True):
                if is_known:
                    continue
                try:
                    if self._admit(row.turn_id, waits=row.session_id in self._rebuilt):
                        queued += 1
                        self._rebuilt.add(row.session_id)
                except Exception as failure:
                    # One row that cannot be queued must not keep those after it from being queued.
                    log.error("turn not queued from SQL", failure=failure, turn_id=row.turn_id)
            self._after_row = rows[-1].row
            if len(rows) < PAGE:
                break
            if time.monotonic() > until:
                return queued
        self._after_row = 0
        self._rebuilt.clear()
        return queued

    def readmit(self, turn_id: str) -> bool:
        """Queue a turn that Redis does not know, if SQL waits for its end; False when nobody does.

        A turn stands in the index before Redis knows it. Were it dropped from there while its producer is
        between the two, no sweeper would ever look at it.
        """
        return self._accepted.result(turn_id) is None and self._admit(turn_id) > 0

    def _admit(self, turn_id: str, *, waits: bool = False) -> int:
        """`waits`: the session's queue is being rebuilt. What a turn did to the live one when it was submitted it
        must not do to those that this very rebuilding has queued before it."""
        request = self._accepted.request(turn_id)
        if request is None:
            return 0
        if waits:
            request = request.model_copy(update={"on_busy": "enqueue"})
        try:
            self._admission.queue_again(request)
        except SessionBusy:
            return 0  # its producer did not want it to wait, and is refused in SQL
        # Redis lost it, or its producer died, or is only slow: then there is nothing to warn of.
        log.info("turn queued from SQL", turn_id=turn_id)
        return 1
