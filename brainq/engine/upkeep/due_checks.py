"""The checks of each sweep: processes that are gone, turns that are due, and lanes whose leases have lapsed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from brainq.contracts.claim import CallRef
from brainq.contracts.fleet import SweepResult, TurnKey
from brainq.contracts.status import StopReason
from brainq.engine.finalize.finalizer import TurnFinalizer
from brainq.engine.people.children import ChildDesk
from brainq.engine.people.lost_turns import LostTurns
from brainq.engine.turn.coordinator import Coordinator
from brainq.engine.turn.decide import FALLBACK_TEXTS
from brainq.engine.upkeep.lost_calls import Rescuer
from brainq.runtime.observe.logs import logger, turn_log_ids
from brainq.runtime.observe.metrics import catalogue as m
from brainq.runtime.observe.metrics.counters import COUNTERS
from brainq.runtime.observe.work_events import UNWATCHED, WorkEvents

if TYPE_CHECKING:
    from brainq.adapters.redis.calls import RedisCalls
    from brainq.adapters.redis.sweeper import RedisSweeperState
    from brainq.adapters.redis.turns import RedisTurns

log = logger("brainq.upkeep")
TURNS_AT_ONCE = 100  # few, so that sweepers share what is due
LANES_AT_ONCE = 100
LOOKS_S = 1.0  # for the checks of turns in one sweep, so that lanes, SQL and judges always get their turn
HOLD_S = 2.0  # for which no other sweeper gets the turns that one has taken


@dataclass(eq=False, kw_only=True)
class DueChecks:
    """The checks of what is due by the index in Redis, and the actions that follow. Each may be repeated.

    every_s: the time between two sweeps.
    watchers: notified of work that the sweeper has done for a turn or a call.
    """

    every_s: float
    state: RedisSweeperState
    calls: RedisCalls
    turns: RedisTurns
    rescuer: Rescuer
    lost_turns: LostTurns
    coordinator: Coordinator
    finalizer: TurnFinalizer
    children: ChildDesk
    watchers: WorkEvents = field(default=UNWATCHED, init=False)

    def lapse_gone(self) -> None:
        for gone in self.state.lapse_gone():
            if gone.leases > 0:  # a process that was shut down regularly held none
                log.warning("a process is gone; its work continues elsewhere", process=gone.process, leases=gone.leases)

    def check_turns(self) -> None:
        until = time.monotonic() + max(LOOKS_S, self.every_s)
        while time.monotonic() < until:
            due = self.state.due(TURNS_AT_ONCE, hold_s=max(HOLD_S, 2 * self.every_s))
            if due.stepped:
                log.warning("Redis' clock was set back; overdue checks of turns run now", turns=due.stepped)
            self._look(due.turns)
            if len(due.turns) < TURNS_AT_ONCE:
                return

    def check_lanes(self) -> None:
        mark, lapsed = self.calls.lapsed_lanes(LANES_AT_ONCE)
        for ref in lapsed:
            try:
                if self.calls.check_lanes(ref, mark) == "LEFT":
                    COUNTERS.add(m.LAPSED, "lane")
            except Exception as failure:
                log.error("lane not checked", failure=failure, turn_id=ref.turn_id, call_id=ref.call_id)

    def expire_parks(self, session_id: str, turn_id: str) -> str:
        """Expire waits that have lasted too long, and return what was done in one word.

        Another call, or an early one, changes nothing.
        """
        word, detail = self.calls.expire(session_id, turn_id)
        if word == "CANCEL":
            self.turns.cancel(session_id, turn_id, detail)
        if word != "NONE":
            log.info("waited for too long", turn_id=turn_id, did=word.lower())
        return word.lower()

    def _look(self, turns: Sequence[TurnKey]) -> None:
        """Check several turns at once, and carry out the actions that they need. Each action may be repeated."""
        looks: list[tuple[TurnKey, SweepResult]] = []
        failures: list[Exception] = []
        for turn, look in zip(turns, self.state.look(turns), strict=True):
            if isinstance(look, Exception):
                # One turn that cannot be checked must not hide the others, but all of them may fail.
                failures.append(look)
                log.error("turn not checked", failure=look, turn_id=turn[1])
            else:
                looks.append((turn, look))
        for (session_id, turn_id), look in looks:
            if look.lost:
                COUNTERS.add(m.LAPSED, "turn")
            for action in look.actions:
                try:
                    with turn_log_ids(session_id, turn_id):
                        self._act(session_id, turn_id, look.fence, action)
                except Exception as failure:
                    # One turn that cannot be healed now must not keep the others from being healed.
                    log.error("action failed", failure=failure, turn_id=turn_id, action=action[0])
        if failures and not looks:
            raise failures[0]

    def _act(self, session_id: str, turn_id: str, fence: int, action: tuple[str, ...]) -> None:
        match action:
            case ("end",):
                did = self.coordinator.advance(session_id, turn_id, fence)
                self.watchers.turn(session_id, turn_id, fence, did)
            case ("waited",):
                self.turns.end_wait(session_id, turn_id, FALLBACK_TEXTS[StopReason.WAITED])
            case ("skip",):
                self.turns.skip_opening(session_id, turn_id)
            case ("rescue", call_id, attempt):
                self.rescuer.rescue(CallRef(session_id, turn_id, call_id), int(attempt), self.watchers)
            case ("expire",):
                self.expire_parks(session_id, turn_id)
            case ("parent", *parent):
                self.children.check_parent(session_id, turn_id, CallRef(*parent))
            case ("readmit",):
                if not self.lost_turns.readmit(turn_id):
                    self.state.drop((session_id, turn_id))
            case ("deliver",):
                self.finalizer.deliver(session_id, turn_id)
            case _:
                log.error("unknown action", turn_id=turn_id, action=" ".join(action))
