"""The rows of a tenant's budgets in one database: the granted and raised amounts of its own and its users' windows.

A move copies them to the other database once it is decided, so that earlier spending still counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import bindparam, delete, func, or_, select, text

from brainq.adapters.sql.database import Database
from brainq.adapters.sql.prepared import Record
from brainq.adapters.sql.statements import upsert
from brainq.adapters.sql.tables.budget_tables import BUDGET_TABLES, budget_windows
from brainq.adapters.sql.tables.types import greater_of
from brainq.contracts.ids import PREFIX_BOUNDARY, prefix_upper_bound

_W = budget_windows.c
_KINDS = ("tenant", "user")
_THEIRS = or_(
    *(
        (_W.scope >= bindparam(f"{kind}_first", type_=_W.scope.type))
        & (_W.scope < bindparam(f"{kind}_beyond", type_=_W.scope.type))
        for kind in _KINDS
    )
)
_ROWS = select(budget_windows).where(_THEIRS)
_FORGET = delete(budget_windows).where(_THEIRS)
_NAMES = tuple(column.name for column in budget_windows.columns if column.name != "updated_at")
# Amounts that were changed in that database meanwhile stay if they are higher.
_PUT = upsert(
    budget_windows,
    ("scope", "per", "start_ms"),
    copied=("raised_by",),
    changed={
        **{name: greater_of(_W[name], text(f"excluded.{name}")) for name in ("granted_usd", "raised_usd")},
        **{name: func.coalesce(_W[name], text(f"excluded.{name}")) for name in ("noticed_usd", "noticed_at")},
    },
)


class TenantBudgetRows:
    """The budget rows of tenants, named by their keys. Sessions without a colon share one tenant, whose rows are not
    moved."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def windows(self, tenant: str) -> Sequence[Record]:
        if not tenant.endswith(PREFIX_BOUNDARY) or not BUDGET_TABLES.has(self._db.engine, budget_windows):
            return ()
        return self._db.all(_ROWS, _range(tenant))

    def put(self, rows: Sequence[Record]) -> None:
        """Raise the granted and raised amounts of these windows to at least these values. Idempotent."""
        if not rows:
            return
        BUDGET_TABLES.make(self._db.engine)
        with self._db.transaction() as connection:
            connection.write_many(self._db.pick(_PUT), [{name: row[name] for name in _NAMES} for row in rows])

    def remove(self, tenant: str) -> int:
        """Delete a tenant's rows. Returns how many there were."""
        return self._db.write(_FORGET, _range(tenant)) if self.windows(tenant) else 0


def _range(tenant: str) -> dict[str, str]:
    beyond = prefix_upper_bound(tenant)
    first = {f"{kind}_first": f"{kind} {tenant}" for kind in _KINDS}
    return first | {f"{kind}_beyond": f"{kind} {beyond}" for kind in _KINDS}
