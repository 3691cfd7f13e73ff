"""What a cell is leased of a budget that several share, and when it gives it back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brainq.contracts.budget_lease import Lease, LeaseWish, decide_lease, is_shared
from brainq.contracts.budgets import Budget, BudgetWindow, GrantedWindow, MoneyGrant, WindowCounter
from brainq.engine.upkeep.budget_leases import BudgetLeaseUpdater, is_unused
from brainq.errors import CellUnreachable

NOTHING = Lease()
LEASED = GrantedWindow("all", "day", 0, 3.0, 0.0, is_spent=False, leased_usd=3.0)
SPENT = WindowCounter(1.0, 0.0, 0, 0)


def test_a_lease_is_what_the_call_expects_and_a_twentieth_ahead() -> None:
    assert decide_lease(LeaseWish(0, 0.2, 0.6), NOTHING, [], 10) == (pytest.approx(1.1), True)
    leased, may_begin = decide_lease(LeaseWish(0, 0.2, 0.6), NOTHING, [Lease(9.6, 0.2)], 10)
    assert (leased, may_begin) == (pytest.approx(0.6), True), "what another gave back is free"
    assert decide_lease(LeaseWish(0, 0.2, 0.6), NOTHING, [Lease(9.9)], 10) == (0, False)
    assert decide_lease(LeaseWish(2.0, 2.2, 2.2), NOTHING, [], 1) == (2.0, False), "what is spent already is leased"
    assert decide_lease(LeaseWish(0.5, 0.6, 0.6), Lease(3.0), [], 10) == (3.0, True), "it has more already"
    assert decide_lease(LeaseWish(0.5, 9.0, 9.0), Lease(3.0), [Lease(5.0)], 10) == (3.0, False), "and keeps it"
    assert [is_shared(scope) for scope in ("all", "brain", "brain b", "tenant acme:", "user")] == [True] * 3 + [
        False
    ] * 2


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.floats(0, 3), st.booleans()), max_size=40))
def test_what_is_leased_never_comes_to_more_than_the_cap(asks: list[tuple[int, float, bool]]) -> None:
    """Each cell spends what it may at once, or gives it back."""
    cap, leases, spent = 10.0, [NOTHING] * 3, [0.0] * 3
    for cell, usd, gives_back in asks:
        own = leases[cell]
        others = [lease for name, lease in enumerate(leases) if name != cell]
        taken = spent[cell] + own.returned_usd
        leased, may_begin = decide_lease(LeaseWish(taken, taken + usd, taken + 2 * usd), own, others, cap)
        spent[cell] += usd if may_begin else 0.0
        returned = leased - spent[cell] if gives_back else own.returned_usd
        leases[cell] = Lease(leased, max(own.returned_usd, returned))
        assert sum(lease.leased_usd - lease.returned_usd for lease in leases) <= cap + 1e-6
        assert all(
            money <= lease.leased_usd - lease.returned_usd + 1e-6 for money, lease in zip(spent, leases, strict=True)
        )
    assert sum(spent) <= cap + 1e-6


@pytest.mark.parametrize(
    ("spent", "in_flight", "for_s", "unused"),
    [(1.0, 0, 60, True), (1.0, 0, 59, False), (1.0, 1, 60, False), (2.0, 0, 60, False)],
)
def test_a_lease_is_given_back_once_nothing_was_spent_of_it_for_a_minute(
    spent: float, in_flight: int, for_s: float, unused: bool
) -> None:
    row = GrantedWindow("all", "day", 0, 1.5, 0.0, is_spent=False, leased_usd=3.0, returned_usd=1.0)
    assert is_unused(row, WindowCounter(spent, 0.0, in_flight, 0), for_s) is unused


@dataclass
class LeasedCell:
    """The budgets, SQL, Redis and home of a cell for a BudgetLeaseUpdater: three dollars were leased, two are left."""

    row: GrantedWindow = LEASED
    counter: WindowCounter = SPENT
    now: float = 0.0
    home_has: float = 0.0
    home_free: float = 0.0
    is_away: bool = False
    dies: bool = False
    resumed: int = 0

    def updater(self) -> BudgetLeaseUpdater:
        this: Any = self
        return BudgetLeaseUpdater(budgets=this, leases=Leases(self), counters=this, now=lambda: self.now)

    def shared_windows(self) -> Sequence[tuple[BudgetWindow, GrantedWindow]]:
        return [(BudgetWindow("all", Budget(scope="all", per="day", usd=10.0), (0,)), self.row)]

    def resume(self, scope: str, per: str) -> int:
        self.resumed += 1
        return 1

    def counters(self, windows: Sequence[tuple[str, int]]) -> Sequence[WindowCounter]:
        return [self.counter]

    def grant(self, window: BudgetWindow, start_ms: int, grant: MoneyGrant) -> None:
        assert grant.granted_usd == 3.0

    def give_back(self, window: BudgetWindow, start_ms: int) -> float | None:
        return 2.0


@dataclass
class Leases:
    cell: LeasedCell

    def use_up(self, window: GrantedWindow) -> MoneyGrant:
        return MoneyGrant(3.0, 3.0, 3.0)

    def give_back(self, window: GrantedWindow, returned: float) -> None:
        self.cell.row = replace(self.cell.row, returned_usd=returned)
        if self.cell.dies:
            raise SystemExit
        self.cell.home_has = returned

    def free(self, scope: str, budget: Budget, start_ms: int) -> float:
        if self.cell.is_away:
            raise CellUnreachable("", "it leases shared budgets to the cells")
        return self.cell.home_free


def test_a_cell_keeps_its_lease_while_home_is_away() -> None:
    cell = LeasedCell(is_away=True)
    updater = cell.updater()
    updater.update()
    cell.now = 61
    with pytest.raises(CellUnreachable):
        updater.update()
    assert (cell.row.returned_usd, cell.home_has) == (0, 0)
    cell.is_away = False
    updater.update()
    assert (cell.row.returned_usd, cell.home_has) == (2, 2)


def test_home_hears_of_a_lease_whose_giver_died_before_it_could_tell() -> None:
    cell = LeasedCell(dies=True)
    updater = cell.updater()
    updater.update()
    cell.now = 61
    with pytest.raises(SystemExit):
        updater.update()
    assert (cell.row.returned_usd, cell.home_has) == (2, 0)
    cell.dies = False
    cell.updater().update()
    assert cell.home_has == 2


def test_who_waits_anew_asks_for_what_is_free_by_then() -> None:
    cell = LeasedCell(counter=WindowCounter(3.0, 0.0, 0, 1), home_free=5.0)
    updater = cell.updater()
    for _ in range(2):
        updater.update()
    assert cell.resumed == 1, "what is free was asked for"
    cell.counter = replace(cell.counter, parked=0)
    updater.update()
    cell.counter, cell.home_free = replace(cell.counter, parked=1), 3.0
    updater.update()
    assert cell.resumed == 2
