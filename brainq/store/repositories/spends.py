"""Spends: what each model call of a turn used."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import bindparam, select

from brainq.contracts.usage import Spend
from brainq.store.database import Database, Transaction
from brainq.store.statements import ManyRows
from brainq.store.tables import spends

_OF = (
    select(*(spends.c[name] for name in Spend.model_fields))
    .where(spends.c.turn_id == bindparam("turn"))
    .order_by(spends.c.seq)
)


class Spends:
    """The `spends` table."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._rows = ManyRows(spends, database.dialect)

    def write(self, connection: Transaction, turn_id: str, used: Sequence[Spend]) -> None:
        """Effect: keep the turn's model calls in their order; those kept before stay."""
        self._rows.insert(
            connection, [{"turn_id": turn_id, "seq": seq, **vars(spend)} for seq, spend in enumerate(used, 1)]
        )

    def of(self, turn_id: str) -> list[Spend]:
        """In the order they were made; empty before the finalizer's `log` step."""
        return [Spend.model_validate(dict(found)) for found in self._db.all(_OF, {"turn": turn_id})]
