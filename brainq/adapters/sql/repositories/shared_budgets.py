"""Budgets that several cells share. The home cell's SQL leases amounts to cells; a cell grants its lease to its Redis,
which spends it.

home: budget_leases ──lease──► the cell's budget_windows ──grant──► its Redis ──reserve──► a call
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from sqlalchemy import Float, bindparam, select, update
from sqlalchemy.exc import DBAPIError

from brainq.adapters.sql.database import Database, Transaction
from brainq.adapters.sql.engine import is_sql_unavailable
from brainq.adapters.sql.prepared import Record
from brainq.adapters.sql.repositories.budgets import KEY, WINDOW, Budgets, granted_after
from brainq.adapters.sql.repositories.deliveries import BudgetNotices, Deliveries
from brainq.adapters.sql.statements import insert_or_ignore, upsert
from brainq.adapters.sql.tables.budget_tables import BUDGET_TABLES, budget_leases, budget_windows
from brainq.adapters.sql.tables.types import greater_of, utc_now
from brainq.contracts.budget_lease import Lease, LeaseWish, decide_lease, is_shared
from brainq.contracts.budgets import NOTICE_SHARE, Budget, BudgetNotice, GrantedWindow, MoneyGrant, MoneyRefusal
from brainq.contracts.webhook import Webhook
from brainq.errors import CellUnreachable

T = TypeVar("T")
ANSWER_S = 2.0  # A short limit: a call that waits for a lease tries again, and must not hang with the home cell.
_WHOLE = ""
"""The cell name, which no cell has, of the row for a whole window. The row also serves as the window's lock."""
_W, _L = budget_windows.c, budget_leases.c
_MAKE = insert_or_ignore(budget_leases)
_OF = (
    _L.scope == bindparam("of", type_=_L.scope.type),
    _L.per == bindparam("by_per", type_=_L.per.type),
    _L.start_ms == bindparam("begin", type_=_L.start_ms.type),
)
_OF_ONE = (*_OF, _L.cell == bindparam("which", type_=_L.cell.type))
_LOCK = update(budget_leases).where(*_OF_ONE).values(updated_at=utc_now())
_ROWS = select(budget_leases).where(*_OF)
_WHOLES = select(budget_leases).where(_L.cell == _WHOLE, _L.start_ms >= bindparam("since", type_=_L.start_ms.type))
_LEASE = upsert(budget_leases, ("scope", "per", "start_ms", "cell"), copied=("leased_usd",), changed={})
_RETURN = (
    update(budget_leases)
    .where(*_OF_ONE)
    .values(returned_usd=greater_of(_L.returned_usd, bindparam("back", type_=Float())), updated_at=utc_now())
)
_RAISE = update(budget_leases).where(*_OF_ONE).values(raised_usd=bindparam("after"), raised_by=bindparam("who"))
_NOTICE = (
    update(budget_leases).where(*_OF_ONE).values(noticed_usd=bindparam("cap", type_=Float()), noticed_at=utc_now())
)
_LEASED = (
    update(budget_windows).where(*KEY).values(leased_usd=greater_of(_W.leased_usd, bindparam("lease", type_=Float())))
)
_USED_UP = update(budget_windows).where(*KEY, _W.leased_usd > _W.granted_usd).values(granted_usd=_W.leased_usd)
_RETURNED = (
    update(budget_windows)
    .where(*KEY)
    .values(returned_usd=greater_of(_W.returned_usd, bindparam("back", type_=Float())))
)


class HomeBudgets:
    """The `budget_leases` table, in the home cell's SQL. It has one row per window and cell, and one row for each whole
    window."""

    def __init__(self, database: Database, webhooks: Sequence[Webhook]) -> None:
        self._db = database
        self._notices = BudgetNotices(Deliveries(database), webhooks)

    def lease(self, cell: str, scope: str, budget: Budget, start_ms: int, wish: LeaseWish) -> float | None:
        """Lease an amount to a cell. Returns the total that is now leased to it. Returns None if the cap is lower than
        the call needs."""
        key = _key(scope, budget.per, start_ms)
        with self._db.transaction() as connection:
            rows = self._locked_rows(connection, key)
            leases = {row["cell"]: Lease(row["leased_usd"], row["returned_usd"]) for row in rows}
            whole = _whole(rows)
            cap = budget.usd + whole["raised_usd"]
            others = [lease for name, lease in leases.items() if name not in (cell, _WHOLE)]
            leased, may_begin = decide_lease(wish, leases.get(cell, Lease()), others, cap)
            connection.write(self._db.pick(_LEASE), {**_new_row(key, cell), "leased_usd": leased})
            leases[cell] = replace(leases.get(cell, Lease()), leased_usd=leased)
            total = sum(lease.leased_usd - lease.returned_usd for lease in leases.values())
            is_near = not may_begin or total >= NOTICE_SHARE * cap
            if is_near and cap and whole["noticed_usd"] != cap:
                connection.write(_NOTICE, {**key, "which": _WHOLE, "cap": cap})
                self._notices.plan(connection, BudgetNotice(scope, budget.per, start_ms, cap, total))
        return leased if may_begin else None

    def free(self, scope: str, budget: Budget, start_ms: int) -> float:
        """Return the amount of the window that is not leased to any cell."""
        rows = self._db.all(_ROWS, _key(scope, budget.per, start_ms))
        return budget.usd + sum(row["raised_usd"] - row["leased_usd"] + row["returned_usd"] for row in rows)

    def raise_by(self, scope: str, budget: Budget, start_ms: int, more: float, by: str) -> float:
        """Raise the cap of this window only. Returns the new cap.

        If the connection is cut, the row of the whole window shows whether it was raised.
        """
        key = _key(scope, budget.per, start_ms)
        while True:
            after = None
            try:
                with self._db.transaction() as connection:
                    after = _whole(self._locked_rows(connection, key))["raised_usd"] + more
                    connection.write(_RAISE, {**key, "which": _WHOLE, "after": after, "who": by})
                return budget.usd + after
            except DBAPIError as cut:
                if after is None or not cut.connection_invalidated:
                    raise
                whole = _whole(self._db.all(_ROWS, key))
                if (whole["raised_usd"], whole["raised_by"]) == (after, by):
                    return budget.usd + after

    def give_back(self, cell: str, scope: str, per: str, start_ms: int, returned: float) -> None:
        """Record the total amount of the window that the cell has given back."""
        self._db.put(_RETURN, {**_key(scope, per, start_ms), "which": cell, "back": returned})

    def wholes(self, since_ms: int) -> dict[tuple[str, str, int], Record]:
        """Return the rows of the whole windows that began at or after `since_ms`, by scope, period and start. They have
        the raises and notices."""
        return {(row["scope"], row["per"], row["start_ms"]): row for row in self._db.all(_WHOLES, {"since": since_ms})}

    def _locked_rows(self, connection: Transaction, key: dict[str, object]) -> Sequence[Record]:
        connection.write(self._db.pick(_MAKE), _new_row(key, _WHOLE))
        connection.write(_LOCK, {**key, "which": _WHOLE})
        return connection.all(_ROWS, key)


def _whole(rows: Sequence[Record]) -> Record:
    return next(row for row in rows if row["cell"] == _WHOLE)


def home_budgets(sql_url: str, webhooks: Sequence[Webhook]) -> HomeBudgets:
    """Open the budgets in the home cell's SQL, on their own connections. Raises SQLAlchemy's errors if that database
    does not answer."""
    return HomeBudgets(BUDGET_TABLES.open(sql_url, pool_size=2, answer_s=ANSWER_S), webhooks)


class SharedBudgets(Budgets):
    """One cell's tables of budgets, where there are several cells. `home`: opened when it is first asked."""

    def __init__(
        self, database: Database, notices: BudgetNotices, *, cell: str, home: Callable[[], HomeBudgets]
    ) -> None:
        super().__init__(database, notices)
        self._cell = cell
        self._home = home

    def grant(self, scope: str, budget: Budget, refusal: MoneyRefusal) -> MoneyGrant | None:
        """Grant a window the amount that a call needs. Raises CellUnreachable if the lease is used up and the home cell
        does not answer."""
        if not is_shared(scope):
            return super().grant(scope, budget, refusal)
        BUDGET_TABLES.make(self._db.engine)
        is_last, key = False, _key(scope, budget.per, refusal.start_ms)
        while True:
            found = self._grant_leased(scope, budget, refusal, is_last=is_last)
            if isinstance(found, MoneyGrant):
                return found
            leased = self._ask_home(partial(_lease, self._cell, scope, budget, refusal.start_ms, found))
            if leased is None:
                self.mark_spent(scope, budget.per, refusal.start_ms, is_spent=True)
                return None
            self._db.put(_LEASED, {**key, "lease": leased})
            is_last = leased < found.expected

    def _grant_leased(
        self, scope: str, budget: Budget, refusal: MoneyRefusal, *, is_last: bool
    ) -> MoneyGrant | LeaseWish:
        """Grant an amount from the lease, or return the wish for a larger lease.

        is_last: the home cell has no more than the minimum that the call needs.
        """
        key = _key(scope, budget.per, refusal.start_ms)
        while True:
            with self._db.transaction() as connection:
                found = self.window(connection, scope, budget, refusal.start_ms)
                before, leased = float(found["granted_usd"]), float(found["leased_usd"])
                more = before if refusal.is_new else 0.0
                wish = LeaseWish(before, more + refusal.wanted, more + refusal.expected)
                if (wish.wanted if is_last else wish.expected) > leased + 1e-9:
                    return wish
                after = granted_after(before, wish.expected, leased, budget.usd)
                if self.write_grant(connection, key, before, after):
                    is_all = is_last and after >= leased
                    return MoneyGrant(after, before, budget.usd, is_all, returned_usd=float(found["returned_usd"]))

    def raise_by(self, scope: str, budget: Budget, start_ms: int, more: float, by: str) -> float:
        if not is_shared(scope):
            return super().raise_by(scope, budget, start_ms, more, by)
        return self._ask_home(lambda home: home.raise_by(scope, budget, start_ms, more, by))

    def windows(self, since_ms: int) -> list[GrantedWindow]:
        """Return the windows. While the home cell does not answer, they lack raises and notices."""
        rows = super().windows(since_ms)
        if not any(is_shared(row.scope) for row in rows):
            return rows
        try:
            wholes = self._ask_home(lambda home: home.wholes(since_ms))
        except CellUnreachable:
            return rows
        return [_with_whole(row, wholes.get((row.scope, row.per, row.start_ms))) for row in rows]

    def use_up(self, window: GrantedWindow) -> MoneyGrant:
        """Grant everything that is leased. The unspent rest is then in Redis."""
        key = _key(window.scope, window.per, window.start_ms)
        self._db.put(_USED_UP, key)
        (found,) = self._db.all(WINDOW, key)
        granted = float(found["granted_usd"])
        return MoneyGrant(granted, granted, granted, returned_usd=float(found["returned_usd"]))

    def give_back(self, window: GrantedWindow, returned: float) -> None:
        """Record the total amount that was taken back from Redis. Idempotent. Raises CellUnreachable."""
        scope, per, start_ms = window.scope, window.per, window.start_ms
        self._db.put(_RETURNED, {**_key(scope, per, start_ms), "back": returned}, durably=True)
        self._ask_home(lambda home: home.give_back(self._cell, scope, per, start_ms, returned))

    def free(self, scope: str, budget: Budget, start_ms: int) -> float:
        return self._ask_home(lambda home: home.free(scope, budget, start_ms))

    def _ask_home(self, question: Callable[[HomeBudgets], T]) -> T:
        """Return the home cell's answer. Raises CellUnreachable."""
        try:
            return question(self._home())
        except Exception as failure:
            if not is_sql_unavailable(failure):
                raise
            raise CellUnreachable("", "it leases shared budgets to the cells") from failure


def _lease(cell: str, scope: str, budget: Budget, start_ms: int, wish: LeaseWish, home: HomeBudgets) -> float | None:
    return home.lease(cell, scope, budget, start_ms, wish)


def _key(scope: str, per: str, start_ms: int) -> dict[str, object]:
    return {"of": scope, "by_per": per, "begin": start_ms}


def _new_row(key: dict[str, object], cell: str) -> dict[str, object]:
    nothing = {"leased_usd": 0.0, "returned_usd": 0.0, "raised_usd": 0.0, "raised_by": ""}
    return {"scope": key["of"], "per": key["by_per"], "start_ms": key["begin"], "cell": cell, **nothing}


def _with_whole(row: GrantedWindow, whole: Record | None) -> GrantedWindow:
    if whole is None:
        return row
    return replace(
        row, raised_usd=whole["raised_usd"], noticed_usd=whole["noticed_usd"], noticed_at=whole["noticed_at"]
    )
