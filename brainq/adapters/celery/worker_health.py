"""A worker's health. The worker is checked before it consumes, and it stops consuming while it cannot work.

A worker that cannot work would take messages from others and fail them, and each failure costs its turn a lease. No
state is remembered: each look compares the present state (does it consume, does its ready file exist?) with the
required one. An action that failed is tried again at the next look.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from brainq.errors import SetupError, Unreachable
from brainq.runtime.observe.logs import OutageLog, logger
from brainq.runtime.processes.resources import is_shortage
from brainq.runtime.processes.supervised import is_marked_ready, mark_ready, mark_unready

if TYPE_CHECKING:
    from brainq.adapters.celery.celery57.consumer import Consumer

log = logger("brainq.tasks")
TICK_S = 0.2
CHECK_EVERY_S = 3.0
# While something is missing, check this often, so that the worker consumes again within a second.
RECHECK_EVERY_S = 0.5
PAUSE_S = 0.1  # between two looks
GAP_REPORT_S = 5.0
LOOK_LIMIT_S = 8.0  # A look is given up after this, although the connection to a frozen server is given up later.
SETUP_EXIT = 6  # the command line's Exit.SETUP: another attempt would fail in the same way
Action = Literal["consume", "pause", "mark", "unmark"]
NO_POOLS: frozenset[str] = frozenset()
Look = Callable[[], object]
"""A function that raises an error if something is wrong. The messages of SetupError and Unreachable are for people."""


@dataclass(frozen=True, slots=True)
class WorkerState:
    """The state of a worker at one moment.

    lacks: why it cannot work, or "".
    gap: why it is not ready although it works, or "".
    consumes: whether it takes messages.
    idle: the pools that cannot work although the worker can.
    paused: its pools whose messages it does not take, if it takes any.
    is_marked: whether its ready file exists, or None if it has none.
    is_draining: whether it was asked to stop.
    """

    lacks: str = ""
    gap: str = ""
    consumes: bool = False
    is_marked: bool | None = None
    is_draining: bool = False
    idle: frozenset[str] = NO_POOLS
    paused: frozenset[str] = NO_POOLS


def due_actions(state: WorkerState) -> tuple[Action, ...]:
    """Return the actions that bring the worker into the required state. Ready implies consuming."""
    if state.is_draining:  # Celery itself ends the consuming.
        return ("unmark",) if state.is_marked else ()
    can_work = not state.lacks
    is_ready = can_work and state.consumes and not state.gap and not state.idle and not state.paused
    actions: list[Action] = []
    if state.consumes is not can_work or (can_work and state.paused != state.idle):
        actions.append("consume" if can_work else "pause")
    if state.is_marked is not None and state.is_marked is not is_ready:
        actions.append("mark" if is_ready else "unmark")
    return tuple(actions)


def end_by_setup(wrong: SetupError) -> NoReturn:
    """End the process with exit code 6, so that a supervisor does not restart it."""
    log.error("this worker cannot work and exits", why=str(wrong))
    raise SystemExit(SETUP_EXIT) from wrong


@dataclass(slots=True)
class _Looks:
    """Looks of one kind, by name, and their latest results."""

    by_name: Mapping[str, Look]
    found: str = ""
    asking: str = ""
    asked_at: float = field(default_factory=time.monotonic)

    def run(self) -> None:
        """Run the looks until one finds something wrong."""
        found = ""
        for name, look in self.by_name.items():
            self.asked_at, self.asking = time.monotonic(), name
            try:
                look()
            except Exception as failure:
                found = str(failure) if isinstance(failure, SetupError) else f"{name}: {type(failure).__name__}"
                break
        self.found, self.asking = found, ""

    @property
    def wrong(self) -> str:
        """The problem that was found, or that a look takes too long."""
        asking, age_s = self.asking, time.monotonic() - self.asked_at
        return f"{asking} has not answered for {age_s:.0f} s" if asking and age_s > LOOK_LIMIT_S else self.found


@dataclass(frozen=True, slots=True)
class PoolNeeds:
    """What some pools of a worker cannot work without. Its other pools work also while that is missing."""

    pools: frozenset[str] = NO_POOLS
    looks: Mapping[str, Look] = field(default_factory=dict[str, Look])


class WorkerHealth:
    """The health of one worker.

    prepare: opens what the worker needs. Raises Unreachable while that is down, and SetupError if it is wrong.
    needs: the looks at what it cannot work without.
    wants: the looks at what it needs to be ready. It consumes even without them.
    some: what some of its pools need.
    """

    def __init__(
        self,
        prepare: Look,
        needs: Mapping[str, Look],
        wants: Mapping[str, Look] | None = None,
        some: PoolNeeds | None = None,
    ) -> None:
        self._prepare = prepare
        self._some_pools = some.pools if some else NO_POOLS
        self._some = _Looks(some.looks if some else {})
        self._needs, self._wants = _Looks(needs), _Looks(wants or {}, found="it has just started" if wants else "")
        self._doubted, self._changed = threading.Event(), threading.Event()
        self._consumer: Consumer | None = None
        self._draining = False
        self._reported_lack = self._reported_gap = False
        self._gap_began = time.monotonic()
        self._outage = OutageLog(log, "marking this worker as ready or not")

    def wait_fit(self, give_up: Callable[[], object]) -> None:
        """Wait until the worker can work. `give_up` is called now and then, and raises to stop the wait.

        Raises SystemExit(6) if waiting would not help, such as for a schema newer than this release.
        """
        while reason := self._cannot_begin():
            self._report(WorkerState(lacks=reason))
            for _ in range(max(1, round(RECHECK_EVERY_S / TICK_S))):
                time.sleep(TICK_S)
                give_up()

    def follow(self, consumer: Consumer) -> None:
        """Control `consumer` from now on, so that it consumes while the worker can work."""
        self._consumer = consumer

    def drain(self) -> None:
        """Make the worker unready for good, because it was asked to stop. A signal's handler calls this."""
        self._draining = True
        try:
            mark_unready()
        except OSError as failure:
            self._outage.failed(failure)  # the next look tries again

    @property
    def is_draining(self) -> bool:
        return self._draining

    def lacks_of(self, pool: str) -> str:
        """Return why this pool of the worker cannot work, or has not been ready for a while, or "", for the fleet."""
        some = self._some.wrong if pool in self._some_pools else ""
        return self._needs.wrong or some or (self._wants.wrong if self._reported_gap else "")

    def check_soon(self) -> None:
        """Look at once, because a task failed in an unexpected way."""
        self._doubted.set()

    def note_change(self) -> None:
        """Compare at once, because the worker itself has changed. If something was missing, look again, too."""
        if self._is_missing_something:
            self._doubted.set()
        self._changed.set()

    def look(self, stopping: threading.Event, _worker: Any = None) -> None:
        """Look at the worker's needs repeatedly until it is stopped."""
        looked_at = float("-inf")
        while not stopping.is_set():
            if self._consumer is None:
                stopping.wait(TICK_S)
                continue
            doubted = self._doubted.wait(TICK_S)
            every_s = RECHECK_EVERY_S if self._is_missing_something else CHECK_EVERY_S
            if not doubted and time.monotonic() - looked_at < every_s:
                continue
            self._doubted.clear()
            for looks in (self._needs, self._some, self._wants):
                looks.run()
            self._changed.set()
            looked_at = time.monotonic()
            stopping.wait(PAUSE_S)  # however many tasks fail

    @property
    def _is_missing_something(self) -> bool:
        return bool(self._needs.found or self._some.found or self._wants.found)

    def watch(self, stopping: threading.Event, _worker: Any = None) -> None:
        """Compare the present state with the required one repeatedly until it is stopped."""
        while not stopping.is_set():
            self._changed.wait(TICK_S)
            self._changed.clear()
            self.compare()

    def compare(self) -> None:
        """Run the due actions. A failed one is due again at the next look."""
        consumer = self._consumer
        if consumer is None:
            return
        idle_why = self._some.wrong
        idle = self._some_pools if idle_why else NO_POOLS
        state = WorkerState(
            lacks=self._needs.wrong,
            gap=f"{', '.join(sorted(idle))}: {idle_why}" if idle_why else self._wants.wrong,
            consumes=consumer.consumes,
            idle=idle,
            paused=consumer.paused_pools,
            is_marked=is_marked_ready(),
            is_draining=self._draining,
        )
        for action in due_actions(state):
            self._act(action, consumer, idle)
        self._report(state)

    def _act(self, action: Action, consumer: Consumer, idle: frozenset[str]) -> None:
        if action in ("consume", "pause"):
            consumer.consume_if(action == "consume", idle)
            return
        try:
            (mark_ready if action == "mark" else mark_unready)()
            if self._draining:  # since the look
                mark_unready()
        except OSError as failure:
            self._outage.failed(failure)
        else:
            self._outage.worked()

    def _cannot_begin(self) -> str:
        """Return why it cannot begin yet, or ""."""
        try:
            self._prepare()
        except Unreachable as away:
            return str(away)
        except SetupError as wrong:
            end_by_setup(wrong)
        except Exception as failure:
            if not is_shortage(failure):
                raise
            return type(failure).__name__
        self._needs.run()
        self._some.run()
        return self._needs.found or self._some.found

    def _report(self, state: WorkerState) -> None:
        """Log each change once. A gap that closes by itself, such as during a start, is not logged."""
        if state.lacks and not self._reported_lack:
            log.error("this worker cannot work, so it consumes no messages for now", why=state.lacks)
            self._reported_lack = True
        elif self._reported_lack and state.consumes and not state.lacks:
            log.warning("this worker can work again and consumes messages")
            self._reported_lack = False
        if not state.gap or state.lacks:
            self._gap_began = time.monotonic()
            if self._reported_gap and not state.lacks:
                log.warning("this worker is ready again")
                self._reported_gap = False
        elif not self._reported_gap and time.monotonic() - self._gap_began > GAP_REPORT_S:
            log.warning("this worker consumes messages but is not ready", why=state.gap)
            self._reported_gap = True
