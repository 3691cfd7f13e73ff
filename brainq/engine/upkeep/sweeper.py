"""The sweeper: it checks every turn that is due and starts what is missing, such as lost doorbells and expired parks.

It also compares SQL's rows with Redis, and publishes how many turns may be live at once.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from brainq.contracts.claim import CallRef
from brainq.contracts.fleet import ComparedPage, SweepResult, TurnKey
from brainq.contracts.status import StopReason
from brainq.engine.finalize.finalizer import TurnFinalizer
from brainq.engine.people.approvals import ApprovalHealer
from brainq.engine.people.brakes import BrakeDesk
from brainq.engine.people.budgets import BudgetDesk
from brainq.engine.people.children import ChildDesk
from brainq.engine.people.inputs import InputDesk
from brainq.engine.people.lost_turns import LostTurns
from brainq.engine.people.stops import StopDesk
from brainq.engine.people.tenant_places import ONE_CELL, TenantPlaces
from brainq.engine.turn.coordinator import Coordinator
from brainq.engine.turn.decide import FALLBACK_TEXTS
from brainq.engine.upkeep.lost_calls import Rescuer
from brainq.engine.upkeep.schedules import ScheduleRunner
from brainq.runtime.observe.logs import OutageLog, logger, turn_log_ids
from brainq.runtime.observe.metrics import catalogue as m
from brainq.runtime.observe.metrics.counters import COUNTERS
from brainq.runtime.observe.work_events import UNWATCHED, WorkEvents

if TYPE_CHECKING:
    from brainq.adapters.redis.calls import RedisCalls
    from brainq.adapters.redis.finals import RedisFinalChain
    from brainq.adapters.redis.sweeper import RedisSweeperState
    from brainq.adapters.redis.turns import RedisTurns
    from brainq.adapters.sql.jobs import JobTable

log = logger("brainq.upkeep")
DEFAULT_THREADS = 100  # threads of one coordinator, used while none has reported its own
VISIBLE_AFTER_S = 60.0  # on Postgres a row may be seen this long after a higher one
RING_AFTER_S = 1.0  # a job that is due for this long has no doorbell, or its doorbell was lost
RING_AT_ONCE = 100
TURNS_AT_ONCE = 100  # few, so that sweepers share what is due
LANES_AT_ONCE = 100
COMPARE_EVERY_SWEEPS = 5
COMPARER_LOST_AFTER = 3  # a comparer that misses this many rounds is replaced
WALK_S = 1.0  # for the rows of one table; checks of lapsed leases wait meanwhile
LOOKS_S = 1.0  # for the checks of turns in one sweep, so that lanes, SQL and judges always get their turn
HOLD_S = 2.0  # for which no other sweeper gets the turns that one has taken
LONG_S = 10.0


@dataclass(frozen=True, slots=True)
class TurnCapacity:
    """The numbers of turns that may be live: of all tenants, and of one tenant."""

    all: int
    tenant: int


def turn_capacity(
    threads: int, max_turns: int | None, max_turns_a_tenant: int | None, cap: int | None = None
) -> TurnCapacity:
    """Return the capacity for coordinators with this many threads. Pure.

    By default more turns may be live than there are threads, so that few threads are idle while turns wait for their
    calls. One tenant alone keeps seven of eight threads busy, so that another tenant's turns begin at once.

    cap: the cap of the deployment's only brain, which limits all turns. None if there are several brains, or no cap.
    """
    size = max_turns or -(-(threads or DEFAULT_THREADS) * 5 // 4)
    share = max_turns_a_tenant or -(-size * 7 // 10)
    size = size if cap is None else min(size, cap)
    return TurnCapacity(size, min(size, share))


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityPublisher:
    """The publisher of how many turns may be live. It also restores what Redis has lost of this.

    threads: returns the number of threads of all coordinators that are alive.
    max_turns, max_turns_a_tenant: the deployment's settings, or None to derive them from the threads.
    own: the shares of tenants that have their own, by the prefix of their sessions.
    caps: how many turns of a brain may be live, for each brain with a cap, by its name.
    cap: the cap of the only brain, if turns name no brain.
    """

    state: RedisSweeperState
    threads: Callable[[], int]
    max_turns: int | None
    max_turns_a_tenant: int | None
    own: Mapping[str, int]
    caps: Mapping[str, int]
    cap: int | None

    def apply(self) -> None:
        size = turn_capacity(self.threads(), self.max_turns, self.max_turns_a_tenant, self.cap)
        self.state.set_capacity(size.all, size.tenant, self.own, self.caps)


class RowWalk:
    """The walk through the rows of one table. `heal` compares the page of rows after the row that it is given.

    Redis knows a row for as long as it keeps its data. Therefore old rows are compared all at once only if Redis may
    have lost data (`restart`), and otherwise one page in each round.
    """

    def __init__(self, heal: Callable[[int], ComparedPage]) -> None:
        self._heal = heal
        self.restart()

    def restart(self) -> None:
        """Compare every row again in the next rounds."""
        self._settled = 0  # up to here all rows have been compared, and no other row can still become visible
        self._reached = 0
        self._ends: deque[tuple[float, int]] = deque()  # when the walk reached the last row, and which row that was
        self._old = 0

    def walk(self, limit_s: float) -> int:
        """Compare the new rows and one page of old rows. Returns how many rows were repaired.

        After `limit_s` seconds, the rest of the new rows is left for the next round.
        """
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


@dataclass(eq=False, kw_only=True)
class Sweeper:
    """The sweep loop of a coordinator process. All its writes are fenced, so any number may run."""

    every_s: float
    state: RedisSweeperState
    calls: RedisCalls
    rescuer: Rescuer
    lost_turns: LostTurns
    coordinator: Coordinator
    finalizer: TurnFinalizer
    turns: RedisTurns
    judgements: JobTable
    step_jobs: JobTable
    finals: RedisFinalChain
    children: ChildDesk
    inputs: InputDesk
    brakes: BrakeDesk
    stops: StopDesk
    approvals: ApprovalHealer
    schedules: ScheduleRunner
    capacity: CapacityPublisher
    tenants: TenantPlaces = ONE_CELL
    budgets: BudgetDesk | None = None

    def __post_init__(self) -> None:
        self._epoch = ""
        self._walks = {
            "compare SQL with Redis": RowWalk(self.lost_turns.compare),
            "restore brakes": RowWalk(self.brakes.heal),
            "heal inputs": RowWalk(self.inputs.heal),
            "decide approvals again": RowWalk(self.approvals.heal),
        }
        self._watchers = UNWATCHED
        self._outages: dict[str, OutageLog] = {}

    def run(self, stop: threading.Event, watchers: WorkEvents = UNWATCHED) -> None:
        """Sweep until stopped.

        A failure, such as Redis or SQL being away, is logged once, and the part is tried again.
        """
        self._watchers = watchers
        sweeps = 0
        while not stop.wait(self.every_s):
            started = time.monotonic()
            self.sweep()
            if sweeps % COMPARE_EVERY_SWEEPS == 0:
                self._run_part("take turns at comparing", self._compare)
            sweeps += 1
            if time.monotonic() - started > LONG_S:
                log.warning("a sweep took long", took_s=round(time.monotonic() - started, 1))

    def sweep(self) -> None:
        """Run the checks that are due, for a bounded time. Those that are due longest come first; the rest waits."""
        self._run_part("find processes that are gone", self._lapse_gone)
        self._run_part("check turns", self._check_due_turns)
        self._run_part("check lanes", self._check_lanes)

    def _compare(self) -> None:
        if not self.state.take_comparing(self.every_s * COMPARE_EVERY_SWEEPS * COMPARER_LOST_AFTER):
            return
        self._run_part("keep tombstones", self.tenants.restore)
        self._run_part("restore operators' stops", self.stops.heal)  # before a lost turn is begun again
        self._run_part("publish the capacity", self.capacity.apply)
        epoch = self.state.epoch()
        if epoch != self._epoch:
            for walk in self._walks.values():
                walk.restart()
            self._epoch = epoch
        if self.budgets is not None:
            self._run_part("count what budgets have spent", partial(self.budgets.restore, epoch))
        self._run_part("queue the turns of tenants that have arrived", self._bring_in)
        for name, walk in self._walks.items():
            self._run_part(name, partial(walk.walk, WALK_S))
        self.ring_jobs()
        self._run_part("begin scheduled turns", self.schedules.run)

    def ring_jobs(self) -> None:
        """Ring for jobs whose doorbell was lost, or whose next try is due."""
        self._run_part("ring judges", partial(self._ring, self.judgements, self.finals.ring_judge))
        self._run_part("ring finalizer steps", partial(self._ring, self.step_jobs, self.finals.ring_step))

    def _bring_in(self) -> None:
        """Queue the waiting turns and inputs of tenants that have arrived.

        Afterwards these tenants need no such check.
        """
        for tenant, mark in self.tenants.arrivals().items():
            if self.lost_turns.bring_in(tenant) and self.inputs.bring_in(tenant):
                self.tenants.arrived(tenant, mark)

    def _run_part(self, name: str, part: Callable[[], object]) -> None:
        """Run one part of a sweep. A failure in it does not prevent the other parts."""
        outage = self._outages.setdefault(name, OutageLog(log, f"sweep ({name})"))
        try:
            part()
        except Exception as failure:
            outage.failed(failure)
        else:
            outage.worked()

    def _ring(self, jobs: JobTable, ring: Callable[[str, str, str], object]) -> None:
        for session_id, turn_id, name in jobs.due(RING_AFTER_S, RING_AT_ONCE):
            ring(session_id, turn_id, name)

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

    def _lapse_gone(self) -> None:
        for gone in self.state.lapse_gone():
            if gone.leases > 0:  # a process that was shut down regularly held none
                log.warning("a process is gone; its work continues elsewhere", process=gone.process, leases=gone.leases)

    def _check_due_turns(self) -> None:
        until = time.monotonic() + max(LOOKS_S, self.every_s)
        while time.monotonic() < until:
            due = self.state.due(TURNS_AT_ONCE, hold_s=max(HOLD_S, 2 * self.every_s))
            if due.stepped:
                log.warning("Redis' clock was set back; overdue checks of turns run now", turns=due.stepped)
            self._look(due.turns)
            if len(due.turns) < TURNS_AT_ONCE:
                return

    def _check_lanes(self) -> None:
        mark, lapsed = self.calls.lapsed_lanes(LANES_AT_ONCE)
        for ref in lapsed:
            try:
                if self.calls.check_lanes(ref, mark) == "LEFT":
                    COUNTERS.add(m.LAPSED, "lane")
            except Exception as failure:
                log.error("lane not checked", failure=failure, turn_id=ref.turn_id, call_id=ref.call_id)

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
                self._watchers.turn(session_id, turn_id, fence, did)
            case ("waited",):
                self.turns.end_wait(session_id, turn_id, FALLBACK_TEXTS[StopReason.WAITED])
            case ("skip",):
                self.turns.skip_opening(session_id, turn_id)
            case ("rescue", call_id, attempt):
                self.rescuer.rescue(CallRef(session_id, turn_id, call_id), int(attempt), self._watchers)
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
