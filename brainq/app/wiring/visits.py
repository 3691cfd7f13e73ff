"""The visits of a process: its threads handle queue messages, and continue with what their work opens."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from brainq.contracts.claim import CallClaim, FinalStepClaim, TurnClaim
from brainq.contracts.status import WorkFailure, WorkOutcome
from brainq.engine.visit import VISIT_S, Visit, served_queues
from brainq.runtime.observe.logs import turn_log_ids
from brainq.runtime.observe.work_events import WorkEvents
from brainq.runtime.processes.pool_threads import PoolThreads

if TYPE_CHECKING:
    from brainq.app.wiring.wiring import Wiring
    from brainq.engine.calls.function_run import Abandon


class Visits:
    """The handling of messages by the threads of a process.

    threads   the threads of the process. Of one that serves a single pool, none continues
    visit_s   how old a visit may be that takes further work
    """

    def __init__(self, wiring: Wiring, threads: PoolThreads, visit_s: float = VISIT_S) -> None:
        self._wiring = wiring
        self._threads = threads
        self._visit_s = visit_s
        self._numbers = itertools.count(1)
        self._pools = self._queues = frozenset[str]()
        # With doorbells elsewhere no script knows whether anybody waits.
        self._is_on = wiring.settings.stay and wiring.settings.doorbell == "transactional"

    def advance(
        self, session_id: str, turn_id: str, fence: int, events: WorkEvents, abandon: Abandon | None = None
    ) -> str:
        """Handle the message of a turn. Returns its outcome as a word."""
        coordinator = self._wiring.coordinator
        if not self._is_on or len(self._threads.pools) < 2:
            return coordinator.advance(session_id, turn_id, fence)
        visit = self._begin()
        return self._visit(visit, partial(coordinator.advance, session_id, turn_id, fence, visit), events, abandon)

    def run_call(
        self,
        session_id: str,
        turn_id: str,
        call_id: str,
        attempt: int,
        events: WorkEvents,
        abandon: Abandon | None = None,
    ) -> str:
        """Handle the message of a call. Returns its outcome as a word."""
        run = self._wiring.runner.run
        if not self._is_on or len(self._threads.pools) < 2:
            return run(session_id, turn_id, call_id, attempt, abandon)
        visit = self._begin()
        return self._visit(visit, partial(run, session_id, turn_id, call_id, attempt, abandon, visit), events, abandon)

    def _begin(self) -> Visit:
        pools = self._threads.pools
        if pools != self._pools:
            self._queues, self._pools = served_queues(pools, self._wiring.serves), pools
        return Visit(self._threads, self._queues, time.monotonic() + self._visit_s, self._next_owner)

    def _next_owner(self) -> str:
        # The letter tells it from the names that machines give to the claims of messages.
        return f"v{next(self._numbers)}@{self._wiring.owner}"

    def _visit(self, visit: Visit, first: Callable[[], str], events: WorkEvents, abandon: Abandon | None) -> str:
        try:
            did = first()
            while (claim := visit.take_next()) is not None:
                if isinstance(claim, FinalStepClaim):
                    self._wiring.finalizer.follow(claim, visit.until, events)
                else:
                    self._continue(visit, claim, events, did, abandon)
            return did
        finally:
            visit.end()

    def _continue(
        self,
        visit: Visit,
        claim: TurnClaim | CallClaim,
        events: WorkEvents,
        did_first: str,
        abandon: Abandon | None,
    ) -> None:
        """Do work that no message was rung for."""
        began, is_turn = time.monotonic(), isinstance(claim, TurnClaim)
        did: str = WorkOutcome("failed", WorkFailure.TURN_FAILED if is_turn else WorkFailure.CALL_FAILED)

        def settle_and_end(settle: Callable[[], str]) -> str:
            try:
                events.ended(claim, settle(), time.monotonic() - began)
            finally:
                visit.end()
            return did_first

        def leave(settle: Callable[[], str]) -> None:
            """End the visit in another thread, because the call's function keeps this one."""
            assert abandon is not None
            abandon(partial(settle_and_end, settle))

        events.began(claim)
        try:
            with turn_log_ids(claim.session_id, claim.turn_id, "" if isinstance(claim, TurnClaim) else claim.call_id):
                if isinstance(claim, TurnClaim):
                    did = self._wiring.coordinator.advance_claimed(claim, visit)
                else:
                    did = self._wiring.runner.run_claimed(claim, leave if abandon else None, visit)
        finally:
            if not visit.is_over:
                events.ended(claim, did, time.monotonic() - began)
