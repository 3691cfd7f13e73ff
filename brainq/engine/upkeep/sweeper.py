"""The sweeper: it runs the checks of what is due, and compares SQL's rows with Redis part by part.

Also says how many turns may be live at once. `app.wiring.sweeper` lists the parts.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from brainq.contracts.fleet import ComparedPage
from brainq.engine.upkeep.due_checks import DueChecks
from brainq.runtime.observe.logs import OutageLog, logger
from brainq.runtime.observe.work_events import UNWATCHED, WorkEvents

if TYPE_CHECKING:
    from brainq.adapters.redis.sweeper import RedisSweeperState

log = logger("brainq.upkeep")
DEFAULT_THREADS = 100  # threads of one coordinator, used while none has reported its own
VISIBLE_AFTER_S = 60.0  # on Postgres a row may be seen this long after a higher one
COMPARE_EVERY_SWEEPS = 5
COMPARER_LOST_AFTER = 3  # a comparer that misses this many rounds is replaced
WALK_S = 1.0  # for the rows of one table; checks of lapsed leases wait meanwhile
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
        self._epoch = ""
        self.restart()

    def run(self, epoch: str) -> None:
        """Walk for a limited time. If the epoch has changed, all rows are compared again."""
        if epoch != self._epoch:
            self.restart()
            self._epoch = epoch
        self.walk(WALK_S)

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


@dataclass(frozen=True, slots=True)
class SweepPart:
    """One part of the round that compares SQL with Redis. Its failure does not prevent the other parts.

    name: names the part in the log.
    run: does the work of one round. It gets the epoch of Redis, which changes if Redis may have lost data.
    """

    name: str
    run: Callable[[str], object]


@dataclass(eq=False, kw_only=True)
class Sweeper:
    """The sweep loop of a coordinator process. All its writes are fenced, so any number may run.

    comparisons: restore what Redis or SQL lacks. One sweeper of all runs them, in this order, every few sweeps.
    due_work: starts jobs and turns whose time has come. It runs after the comparisons.
    """

    every_s: float
    state: RedisSweeperState
    checks: DueChecks
    comparisons: Sequence[SweepPart]
    due_work: Sequence[SweepPart]
    _outages: dict[str, OutageLog] = field(default_factory=dict[str, OutageLog], init=False)

    def run(self, stop: threading.Event, watchers: WorkEvents = UNWATCHED) -> None:
        """Sweep until stopped.

        A failure, such as Redis or SQL being away, is logged once, and the part is tried again.
        """
        self.checks.watchers = watchers
        sweeps = 0
        while not stop.wait(self.every_s):
            started = time.monotonic()
            self.sweep()
            if sweeps % COMPARE_EVERY_SWEEPS == 0:
                self._try("take turns at comparing", self.compare)
            sweeps += 1
            if time.monotonic() - started > LONG_S:
                log.warning("a sweep took long", took_s=round(time.monotonic() - started, 1))

    def sweep(self) -> None:
        """Run the checks that are due, for a bounded time. Those that are due longest come first; the rest waits."""
        self._try("find processes that are gone", self.checks.lapse_gone)
        self._try("check turns", self.checks.check_turns)
        self._try("check lanes", self.checks.check_lanes)

    def compare(self) -> None:
        """Compare SQL with Redis and start the work that is due, unless another sweeper does so in these rounds."""
        if self.state.take_comparing(self.every_s * COMPARE_EVERY_SWEEPS * COMPARER_LOST_AFTER):
            epoch = self.state.epoch()
            for part in (*self.comparisons, *self.due_work):
                self._try(part.name, part.run, epoch)

    def start_due_work(self) -> None:
        """Start the jobs and the scheduled turns whose time has come, and jobs whose doorbell was lost."""
        for part in self.due_work:
            self._try(part.name, part.run, "")

    def _try(self, name: str, run: Callable[..., object], *arguments: str) -> None:
        """Run one part of a sweep. A failure in it does not prevent the other parts."""
        outage = self._outages.setdefault(name, OutageLog(log, f"sweep ({name})"))
        try:
            run(*arguments)
        except Exception as failure:
            outage.failed(failure)
        else:
            outage.worked()
