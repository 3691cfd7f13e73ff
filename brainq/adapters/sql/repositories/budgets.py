"""Budgets in SQL: the budgets that people set, and the granted and raised amounts of their windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sqlalchemy import Float, bindparam, func, select, update
from sqlalchemy.exc import DBAPIError

from brainq.adapters.sql.database import Database, Transaction
from brainq.adapters.sql.prepared import Record
from brainq.adapters.sql.repositories.spending import tenant_in
from brainq.adapters.sql.statements import insert_or_ignore, upsert
from brainq.adapters.sql.tables import spends, turns
from brainq.adapters.sql.tables.budget_tables import BUDGET_TABLES, budget_windows, budgets
from brainq.adapters.sql.tables.types import utc_now
from brainq.contracts.budgets import (
    NOTICE_SHARE,
    Budget,
    BudgetNotice,
    GrantedWindow,
    MoneyGrant,
    MoneyRefusal,
    check_budget,
)
from brainq.contracts.ids import prefix_upper_bound

if TYPE_CHECKING:
    from brainq.adapters.sql.repositories.deliveries import BudgetNotices

AHEAD = 4  # a grant covers this many further calls of the same size, but at most
BATCH_SHARE = 0.05  # this share of the window's amount
_B, _W = budgets.c, budget_windows.c
_STANDING = select(_B.scope, _B.per, _B.usd, _B.at_cap).where(_B.usd.is_not(None))
_SET = upsert(budgets, ("scope", "per"), copied=("usd", "at_cap", "set_by"), changed={"updated_at": utc_now()})
KEY = (
    _W.scope == bindparam("of", type_=_W.scope.type),
    _W.per == bindparam("by_per", type_=_W.per.type),
    _W.start_ms == bindparam("begin", type_=_W.start_ms.type),
)
WINDOW = select(
    *(_W.granted_usd, _W.raised_usd, _W.raised_by, _W.noticed_usd, _W.is_spent, _W.leased_usd, _W.returned_usd)
).where(*KEY)
_BEGIN = insert_or_ignore(budget_windows)
_GRANT = (
    update(budget_windows)
    .where(*KEY, _W.granted_usd == bindparam("before", type_=Float()))
    .values(granted_usd=bindparam("after", type_=Float()), is_spent=bindparam("spent"))
)
_NOTICE = update(budget_windows).where(*KEY).values(noticed_usd=bindparam("cap", type_=Float()), noticed_at=utc_now())
_SPENT = update(budget_windows).where(*KEY).values(is_spent=bindparam("spent"))
_RAISE = (
    update(budget_windows)
    .where(*KEY, _W.raised_usd == bindparam("before", type_=Float()))
    .values(
        raised_usd=bindparam("after", type_=Float()),
        raised_by=bindparam("who"),
        is_spent=bindparam("spent"),
        updated_at=utc_now(),
    )
)
_OPEN_WINDOWS = select(budget_windows).where(_W.start_ms >= bindparam("since", type_=_W.start_ms.type))


def granted_after(before: float, expected: float, most: float, cap: float) -> float:
    """Return the granted amount of a window after a grant for a call with this expected total. Pure."""
    ahead = min(AHEAD * max(0.0, expected - before), cap * BATCH_SHARE)
    return before if expected <= before else min(most, expected + ahead)


class Budgets:
    """The tables `budgets` and `budget_windows`. Thread-safe.

    notices   notify people of windows that are nearly spent; None notifies nobody
    """

    def __init__(self, database: Database, notices: BudgetNotices | None = None) -> None:
        self._db = database
        self._notices = notices

    def standing(self) -> list[Budget]:
        """Return the budgets that people have set."""
        if not BUDGET_TABLES.has(self._db.engine, budgets):
            return []
        found = self._db.all(_STANDING, {})
        return [check_budget(row["scope"], row["per"], row["usd"], row["at_cap"]) for row in found]

    def set(self, scope: str, per: str, usd: float | None, at_cap: str, by: str) -> None:
        """Set a budget. Without an amount the setting applies again."""
        BUDGET_TABLES.make(self._db.engine)
        values = {"scope": scope, "per": per, "usd": usd, "at_cap": at_cap, "set_by": by}
        self._db.put(self._db.pick(_SET), values, durably=True)

    def grant(self, scope: str, budget: Budget, refusal: MoneyRefusal) -> MoneyGrant | None:
        """Grant the window the amount that a refused call needs, and some in advance. Returns None if the cap is
        lower."""
        BUDGET_TABLES.make(self._db.engine)
        start_ms = refusal.start_ms
        key: dict[str, object] = {"of": scope, "by_per": budget.per, "begin": start_ms}
        while True:
            with self._db.transaction() as connection:
                found = self.window(connection, scope, budget, start_ms)
                before, cap = float(found["granted_usd"]), budget.usd + float(found["raised_usd"])
                spent = max(before, self._spent_since(connection, scope, start_ms)) if refusal.is_new else before
                more = spent if refusal.is_new else 0.0
                needed, expected = more + refusal.wanted, more + refusal.expected
                if needed > cap + 1e-9:
                    connection.write(_SPENT, {**key, "spent": True})
                    self._notice(connection, found, BudgetNotice(scope, budget.per, start_ms, cap, before))
                    return None
                after = granted_after(before, expected, cap, cap)
                if not self.write_grant(connection, key, before, after):
                    continue
                notice = BudgetNotice(scope, budget.per, start_ms, cap, after)
                has_noticed = after >= NOTICE_SHARE * cap and self._notice(connection, found, notice)
                return MoneyGrant(after, spent, cap, after >= cap, has_noticed)

    def window(self, connection: Transaction, scope: str, budget: Budget, start_ms: int) -> Record:
        """Return a window's row. Creates the row if it does not exist."""
        key = {"of": scope, "by_per": budget.per, "begin": start_ms}
        while (found := connection.first(WINDOW, key)) is None:
            self._begin(connection, scope, budget, start_ms)
        return found

    @staticmethod
    def write_grant(connection: Transaction, key: Mapping[str, object], before: float, after: float) -> bool:
        """Write a grant. Returns False if another process has granted since the row was read."""
        return connection.write(_GRANT, {**key, "before": before, "after": after, "spent": False}) == 1

    def mark_spent(self, scope: str, per: str, start_ms: int, *, is_spent: bool) -> None:
        """Record whether new turns may be refused because of this window."""
        BUDGET_TABLES.make(self._db.engine)
        self._db.put(_SPENT, {"of": scope, "by_per": per, "begin": start_ms, "spent": is_spent})

    def _notice(self, connection: Transaction, window: Record, notice: BudgetNotice) -> bool:
        """Send the notice once per window and cap. Returns whether this call sent it."""
        if window["noticed_usd"] == notice.cap_usd or not notice.cap_usd:
            return False
        key = {"of": notice.scope, "by_per": notice.per, "begin": notice.start_ms}
        connection.write(_NOTICE, {**key, "cap": notice.cap_usd})
        if self._notices is not None:
            self._notices.plan(connection, notice)
        return True

    def raise_by(self, scope: str, budget: Budget, start_ms: int, more: float, by: str) -> float:
        """Raise the cap of this window only. Returns the new cap.

        If the connection is cut, the row shows whether it was raised.
        """
        BUDGET_TABLES.make(self._db.engine)
        key = {"of": scope, "by_per": budget.per, "begin": start_ms}
        while True:
            with self._db.transaction() as connection:
                before = float(self.window(connection, scope, budget, start_ms)["raised_usd"])
            after = before + more
            try:
                if self._db.write(_RAISE, {**key, "before": before, "after": after, "who": by, "spent": False}):
                    return budget.usd + after
            except DBAPIError as cut:
                if not cut.connection_invalidated:
                    raise
                found = self._db.first(WINDOW, key)
                if found is not None and (found["raised_usd"], found["raised_by"]) == (after, by):
                    return budget.usd + after

    def windows(self, since_ms: int) -> list[GrantedWindow]:
        """Return the windows that began at or after `since_ms`."""
        if not BUDGET_TABLES.has(self._db.engine, budgets):
            return []
        return [
            GrantedWindow(**{field.name: row[field.name] for field in fields(GrantedWindow)})
            for row in self._db.all(_OPEN_WINDOWS, {"since": since_ms})
        ]

    def is_spent(self, scope: str, per: str, start_ms: int) -> bool:
        """Return whether a call was refused in this window since it was last raised."""
        BUDGET_TABLES.make(self._db.engine)
        found = self._db.first(WINDOW, {"of": scope, "by_per": per, "begin": start_ms})
        return found is not None and bool(found["is_spent"])

    def _begin(self, connection: Transaction, scope: str, budget: Budget, start_ms: int) -> None:
        """Create the window's row with the cost of turns that were accepted in it before, because the budget may be
        new."""
        values = {
            "scope": scope,
            "per": budget.per,
            "start_ms": start_ms,
            "raised_usd": 0.0,
            "raised_by": "",
            "granted_usd": self._spent_since(connection, scope, start_ms),
            "is_spent": False,
        }
        connection.write(self._db.pick(_BEGIN), values)

    @staticmethod
    def _spent_since(connection: Transaction, scope: str, start_ms: int) -> float:
        """Return the cost of ended turns that were accepted since `start_ms`."""
        kind, _, name = scope.partition(" ")
        spent = select(func.coalesce(func.sum(spends.c.cost_usd), 0.0).label("usd")).select_from(
            spends.join(turns, turns.c.turn_id == spends.c.turn_id)
        )
        spent = spent.where(
            turns.c.accepted_at >= datetime.fromtimestamp(start_ms / 1000, UTC), spends.c.kind != "child"
        )
        if kind == "brain":
            spent = spent.where(turns.c.brain == name)
        elif kind == "tenant":
            spent = spent.where(tenant_in(turns.c.session_id) == name)
        elif kind == "user":
            spent = spent.where(turns.c.session_id >= name, turns.c.session_id < prefix_upper_bound(name))
        found = connection.first(spent, {})
        return 0.0 if found is None else float(found["usd"])
