"""Finds accepted turns that Redis does not know, and queues them from their rows in SQL."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from brainq.contracts.fleet import ComparedPage
from brainq.engine.people.inputs import InputDesk
from brainq.engine.people.tenant_places import TenantPlaces
from brainq.engine.people.turn_queue import PAGE, TurnQueue
from brainq.errors import BuildUnserved, SessionBusy
from brainq.runtime.observe.logs import logger

if TYPE_CHECKING:
    from brainq.adapters.redis.finals import RedisFinalChain
    from brainq.adapters.redis.sweeper import RedisSweeperState
    from brainq.adapters.sql.records import SqlRecords
    from brainq.adapters.sql.repositories.calls import Calls
    from brainq.adapters.sql.repositories.turns import Turns

log = logger("brainq.upkeep")


@dataclass(frozen=True, slots=True)
class LostEnds:
    """The ends of turns that SQL has lost, because it was failed over to a server without them. Redis has the results.

    redact   returns whether SQL keeps no content of a turn
    """

    finals: RedisFinalChain
    records: SqlRecords
    redact: Callable[[str], bool]

    def restore(self, session_id: str, turn_id: str) -> None:
        """Write the result of a turn again. Without its end, the turn would run again once Redis has expired it."""
        result = self.finals.published(session_id, turn_id)
        if result is not None and self.records.restore_end(result, redact=self.redact(turn_id)):
            log.warning("SQL had lost the end of a turn, which was written again", turn_id=turn_id)


class LostTurns:
    """The search for accepted turns that Redis does not know: the producer died before it queued the turn, or Redis
    lost the turn, or its entry in the index, without which no sweeper would look at it.

    A turn may be lost while a worker asks whether its write may start. Such a turn, and later ones of its session, wait
    until that worker has reported that the write never started, or for `patience_s` at most.
    """

    def __init__(
        self,
        *,
        state: RedisSweeperState,
        accepted: Turns,
        turn_queue: TurnQueue,
        calls: Calls,
        patience_s: float,
        ends: LostEnds | None = None,
    ) -> None:
        self._state = state
        self._accepted = accepted
        self._turn_queue = turn_queue
        self._calls = calls
        self._patience_s = patience_s
        self._ends = ends
        self._rebuilt: set[str] = set()
        self._unsaid: dict[str, tuple[str, float]] = {}  # turn -> session, and the end of its wait by time.monotonic()

    def compare(self, after_row: int) -> ComparedPage:
        """Queue the turns that Redis does not know, of the page of rows after this one."""
        queued, unlisted = self._queue_said(), list[tuple[str, str]]()
        rows = self._accepted.unended(after_row, PAGE)
        standing = self._state.standing([(row.session_id, row.turn_id) for row in rows])
        for row, word in zip(rows, standing, strict=True):
            if word == "unlisted":
                unlisted.append((row.session_id, row.turn_id))
            elif word == "over" and self._ends is not None:
                self._ends.restore(row.session_id, row.turn_id)
            elif word == "unknown":
                queued += self._queue_lost(row.session_id, row.turn_id)
        if unlisted:
            log.warning("turns without an entry in the index were listed again", turns=len(unlisted))
            self._state.list_again(unlisted)
        more = len(rows) == PAGE
        if not more:
            self._rebuilt.clear()
        return ComparedPage(rows[-1].row if rows else after_row, more, queued + len(unlisted))

    def _queue_lost(self, session_id: str, turn_id: str) -> bool:
        """Queue a turn unless it has to wait. Returns whether it was queued."""
        try:
            if self._is_unsaid(session_id, turn_id) or not self._admit(turn_id, waits=session_id in self._rebuilt):
                return False
        except Exception as failure:
            # One row that cannot be queued must not keep later rows from being queued.
            log.error("turn not queued from SQL", failure=failure, turn_id=turn_id)
            return False
        self._rebuilt.add(session_id)
        return True

    def bring_in(self, tenant: str) -> bool:
        """Queue the waiting turns of a tenant that has come to this cell. Returns False if some cannot be queued
        yet."""
        return self._turn_queue.queue_waiting(tenant) == "QUEUED"

    def readmit(self, turn_id: str) -> bool:
        """Queue a turn that Redis does not know. Returns False if SQL has its end, or if it has to wait.

        A turn that the index names but Redis lacks was lost by itself. `compare` finds one that has to wait.
        """
        return self._accepted.result(turn_id) is None and not self._may_be_said(turn_id) and self._admit(turn_id)

    def _may_be_said(self, turn_id: str) -> bool:
        return self._patience_s > 0 and self._calls.started(turn_id) == "unsaid"

    def _is_unsaid(self, session_id: str, turn_id: str) -> bool:
        """Return whether a worker may still report that a write of this turn, or of an earlier one of the session,
        never started."""
        if any(session_id == of for other, (of, _) in self._unsaid.items() if other != turn_id):
            return True
        if self._may_be_said(turn_id):
            now = time.monotonic()
            _, until = self._unsaid.setdefault(turn_id, (session_id, now + self._patience_s))
            if now < until:
                return True
        self._unsaid.pop(turn_id, None)
        return False

    def _queue_said(self) -> int:
        """Queue the turns that have waited long enough, on whatever page they are. Returns how many."""
        queued = 0
        for turn_id, (session_id, _) in list(self._unsaid.items()):
            if self._accepted.result(turn_id) is None:
                queued += self._queue_lost(session_id, turn_id)
            else:
                del self._unsaid[turn_id]
        return queued

    def _admit(self, turn_id: str, *, waits: bool = False) -> bool:
        """Queue one turn.

        waits   the session's queue is being rebuilt, so the turn must not interrupt or replace those queued before it
        """
        request = self._accepted.request(turn_id)
        if request is None:
            return False
        if waits:
            request = request.model_copy(update={"on_busy": "enqueue"})
        try:
            self._turn_queue.queue_again(request)
        except (SessionBusy, BuildUnserved):
            return False  # its producer was refused in SQL
        # Redis lost it, or its producer died or is slow. None of these needs a warning.
        log.info("turn queued from SQL", turn_id=turn_id)
        return True


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The waiting turns and inputs of tenants that have come to this cell."""

    tenants: TenantPlaces
    lost_turns: LostTurns
    inputs: InputDesk

    def queue(self) -> None:
        """Queue what waits. Tenants of which nothing waits any more are not checked again."""
        for tenant, mark in self.tenants.arrivals().items():
            if self.lost_turns.bring_in(tenant) and self.inputs.bring_in(tenant):
                self.tenants.arrived(tenant, mark)
