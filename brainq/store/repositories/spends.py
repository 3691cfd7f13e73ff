"""Spends: what each model call of a turn used."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import BigInteger, Float, bindparam, func, select, update

from brainq.contracts.usage import Spend
from brainq.store.database import Database, Transaction
from brainq.store.statements import ManyRows
from brainq.store.tables import spends, turns

_OF = (
    select(*(spends.c[name] for name in Spend.model_fields))
    .where(spends.c.turn_id == bindparam("turn"))
    .order_by(spends.c.seq)
)


# What has no price adds no money; a turn whose own cost is not known keeps none.
_ADD = (
    update(turns)
    .where(turns.c.turn_id == bindparam("turn"))
    .values(
        tokens=turns.c.tokens + bindparam("more_tokens", type_=BigInteger()),
        cost_usd=turns.c.cost_usd + bindparam("more_usd", type_=Float()),
    )
)
_LAST = select(func.max(spends.c.seq).label("seq")).where(spends.c.turn_id == bindparam("turn"))


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

    def add(self, connection: Transaction, turn_id: str, used: Sequence[Spend]) -> None:
        """Effect: keep model calls that came after the turn's result, and add them to the turn's figures.

        The turn's row is written first: who else adds to the turn waits for it, and numbers its calls behind these.
        """
        if not used:
            return
        usd = sum(spend.cost_usd or 0.0 for spend in used)
        tokens = sum(spend.usage.total for spend in used)
        connection.write(_ADD, {"turn": turn_id, "more_tokens": tokens, "more_usd": usd})
        last = connection.first(_LAST, {"turn": turn_id})
        begin = 1 + (0 if last is None else last["seq"] or 0)
        rows = [{"turn_id": turn_id, "seq": seq, **vars(spend)} for seq, spend in enumerate(used, begin)]
        self._rows.insert(connection, rows)

    def of(self, turn_id: str) -> list[Spend]:
        """In the order they were made, those after the result last; empty before the finalizer's `log` step."""
        return [Spend.model_validate(dict(found)) for found in self._db.all(_OF, {"turn": turn_id})]
