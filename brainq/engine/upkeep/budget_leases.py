"""Budgets that several cells share: a cell gives back what it was leased and does not use, and has its parked turns ask
again once there is more for it. Asked of home every few seconds, only where such budgets are, and never by a call.
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
    """Fitted by `engine.people.budgets.BudgetDesk`."""

    def shared_windows(self) -> Sequence[tuple[BudgetWindow, GrantedWindow]]: ...
    def resume(self, scope: str, per: str) -> int: ...


class CellLeases(Protocol):
    """Fitted by `adapters.sql.repositories.shared_budgets.SharedBudgets`."""

    def use_up(self, window: GrantedWindow) -> MoneyGrant: ...
    def give_back(self, window: GrantedWindow, returned: float) -> None: ...
    def free(self, scope: str, budget: Budget, start_ms: int) -> float: ...


class LeaseCounters(Protocol):
    """Fitted by `adapters.redis.money.RedisMoney`."""

    def counters(self, windows: Sequence[tuple[str, int]]) -> Sequence[WindowCounter]: ...
    def grant(self, window: BudgetWindow, start_ms: int, grant: MoneyGrant) -> None: ...
    def give_back(self, window: BudgetWindow, start_ms: int) -> float | None: ...


@dataclass
class _Seen:
    """What this process knows of a window.

    at         by `now`, when what is spent last changed
    free       of it when turns that wait last asked again
    reported   of what was given back, home has heard from this process
    """

    spent: float
    at: float
    free: float = 0.0
    reported: float = 0.0


@dataclass(eq=False, kw_only=True)
class LeaseKeeper:
    """Of one cell. Any number of processes may: all that it does may be done again."""

    budgets: SharedWindows
    leases: CellLeases
    counters: LeaseCounters
    now: Callable[[], float] = time.monotonic
    _seen: dict[tuple[str, int], _Seen] = field(default_factory=dict[tuple[str, int], _Seen])

    def look(self) -> None:
        """Raises CellUnreachable while home is away, and what Redis and SQL raise."""
        windows = self.budgets.shared_windows()
        places = [(window.name, row.start_ms) for window, row in windows]
        self._seen = {place: seen for place, seen in self._seen.items() if place in places}
        for (window, row), counter in zip(windows, self.counters.counters(places), strict=True):
            seen = self._seen.setdefault((window.name, row.start_ms), _Seen(counter.spent_usd, self.now()))
            if counter.spent_usd != seen.spent or counter.in_flight:
                seen.spent, seen.at = counter.spent_usd, self.now()
            if counter.parked or row.is_spent:
                self._ask_again(window, row, seen)
            else:
                seen.free = 0.0  # whoever waits next has not asked for what is free by then
            if is_unused(row, counter, self.now() - seen.at):
                self._give_back(window, row, seen)
            elif row.returned_usd > seen.reported:
                self._tell_home(row, row.returned_usd, seen)

    def _ask_again(self, window: BudgetWindow, row: GrantedWindow, seen: _Seen) -> None:
        free = self.leases.free(row.scope, window.budget, row.start_ms)
        if free > seen.free + LEAST_USD:
            log.info("a shared budget has more", budget=window.name, free_usd=free)
            self.budgets.resume(row.scope, row.per)
        seen.free = free

    def _give_back(self, window: BudgetWindow, row: GrantedWindow, seen: _Seen) -> None:
        self.leases.free(row.scope, window.budget, row.start_ms)  # while home is away a cell keeps what it has
        self.counters.grant(window, row.start_ms, self.leases.use_up(row))
        returned = self.counters.give_back(window, row.start_ms)
        if returned is not None:
            self._tell_home(row, returned, seen)
            log.info("an unused lease of a budget was given back", budget=window.name, returned_usd=returned)

    def _tell_home(self, row: GrantedWindow, returned: float, seen: _Seen) -> None:
        """Home may not have heard of it: it was away just then, or whoever was to tell it has died."""
        self.leases.give_back(row, returned)
        seen.reported = returned


def is_unused(row: GrantedWindow, counter: WindowCounter, for_s: float) -> bool:
    """Whether the cell gives back what it has left. Pure."""
    left = row.leased_usd - row.returned_usd - counter.spent_usd - counter.held_usd
    return for_s >= UNUSED_S and not counter.in_flight and left > LEAST_USD
