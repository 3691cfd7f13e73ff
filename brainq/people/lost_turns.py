"""Lost turns: those that SQL accepted and Redis does not know are begun again from their row in SQL."""

from __future__ import annotations

from brainq.contracts.fleet import ComparedPage
from brainq.errors import SessionBusy
from brainq.observe.logs import logger
from brainq.people.admission import Admission
from brainq.ports.redis_turns import SweepIndex
from brainq.ports.sql import TurnRows

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
