"""Updates of budgets that several cells share.

A cell returns the part of its lease that it does not use, and resumes its parked turns once the shared budget has more
for them. This runs every few seconds and only if there are shared budgets. It is never part of a model call.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from brainq.contracts.budget_lease import UNUSED_S
from brainq.contracts.budgets import Budget, BudgetWindow, GrantedWindow, MoneyGrant, WindowCounter
from brainq.runtime.observe.logs import logger

log = logger("brainq.upkeep")
LOOK_EVERY_S = 5.0
LEAST_USD = 1e-6


class SharedWindows(Protocol):
    """The budgets of this cell that it shares with others. Implemented by `engine.people.budgets.BudgetDesk`."""

    def shared_windows(self) -> Sequence[tuple[BudgetWindow, GrantedWindow]]: ...
    def resume(self, scope: str, per: str) -> int: ...


class CellLeases(Protocol):
    """The leases in the SQL of the home cell and of this cell.

    Implemented by `adapters.sql.repositories.shared_budgets.SharedBudgets`.
    """

    def use_up(self, window: GrantedWindow) -> MoneyGrant: ...
    def give_back(self, window: GrantedWindow, returned: float) -> None: ...
    def free(self, scope: str, budget: Budget, start_ms: int) -> float: ...


class LeaseCounters(Protocol):
    """The counters of windows in this cell's Redis. Implemented by `adapters.redis.money.RedisMoney`."""

    def counters(self, windows: Sequence[tuple[str, int]]) -> Sequence[WindowCounter]: ...
    def grant(self, window: BudgetWindow, start_ms: int, grant: MoneyGrant) -> None: ...
    def give_back(self, window: BudgetWindow, start_ms: int) -> float | None: ...


@dataclass
class _WindowUse:
    """The use of a window as this process has observed it.

    spent: the spent US dollars at the last update.
    changed_at: when `spent` last changed, by `now`.
    free: the free US dollars of the budget when waiting turns were last resumed.
    reported: the returned US dollars that this process has reported to the home cell.
    """

    spent: float
    changed_at: float
    free: float = 0.0
    reported: float = 0.0


@dataclass(eq=False, kw_only=True)
class BudgetLeaseUpdater:
    """The updates of one cell's budget leases.

    Any number of processes may run them, because each update may be repeated.
    """

    budgets: SharedWindows
    leases: CellLeases
    counters: LeaseCounters
    now: Callable[[], float] = time.monotonic
    _uses: dict[tuple[str, int], _WindowUse] = field(default_factory=dict[tuple[str, int], _WindowUse])

    def update(self) -> None:
        """Return unused leases and resume waiting turns.

        Raises CellUnreachable while the home cell is away, and what Redis and SQL raise.
        """
        windows = self.budgets.shared_windows()
        places = [(window.name, row.start_ms) for window, row in windows]
        self._uses = {place: use for place, use in self._uses.items() if place in places}
        for (window, row), counter in zip(windows, self.counters.counters(places), strict=True):
            use = self._uses.setdefault((window.name, row.start_ms), _WindowUse(counter.spent_usd, self.now()))
            if counter.spent_usd != use.spent or counter.in_flight:
                use.spent, use.changed_at = counter.spent_usd, self.now()
            if counter.parked or row.is_spent:
                self._resume_waiting(window, row, use)
            else:
                use.free = 0.0  # turns that wait later must be resumed for what is free then
            if is_unused(row, counter, self.now() - use.changed_at):
                self._return_unused(window, row, use)
            elif row.returned_usd > use.reported:
                self._report_return(row, row.returned_usd, use)

    def _resume_waiting(self, window: BudgetWindow, row: GrantedWindow, use: _WindowUse) -> None:
        free = self.leases.free(row.scope, window.budget, row.start_ms)
        if free > use.free + LEAST_USD:
            log.info("a shared budget has more", budget=window.name, free_usd=free)
            self.budgets.resume(row.scope, row.per)
        use.free = free

    def _return_unused(self, window: BudgetWindow, row: GrantedWindow, use: _WindowUse) -> None:
        self.leases.free(row.scope, window.budget, row.start_ms)  # raises while home is away, and keeps the lease
        self.counters.grant(window, row.start_ms, self.leases.use_up(row))
        returned = self.counters.give_back(window, row.start_ms)
        if returned is not None:
            self._report_return(row, returned, use)
            log.info("an unused lease of a budget was returned", budget=window.name, returned_usd=returned)

    def _report_return(self, row: GrantedWindow, returned: float, use: _WindowUse) -> None:
        """Report the returned amount to the home cell.

        An earlier report may be missing, because the home cell was away or the process that was to send it died.
        """
        self.leases.give_back(row, returned)
        use.reported = returned


def is_unused(row: GrantedWindow, counter: WindowCounter, for_s: float) -> bool:
    """Return whether the cell should return the rest of its lease. Pure.

    for_s: how long nothing has been spent, in seconds.
    """
    left = row.leased_usd - row.returned_usd - counter.spent_usd - counter.held_usd
    return for_s >= UNUSED_S and not counter.in_flight and left > LEAST_USD
