"""Decisions: one RuntimeDecisionRecord a turn."""

from __future__ import annotations

from sqlalchemy import bindparam, select

from brainq.contracts.decision import RuntimeDecisionRecord
from brainq.contracts.usage import TokenUsage
from brainq.store.database import Database, Transaction
from brainq.store.statements import insert_or_ignore
from brainq.store.tables import decisions
from brainq.store.text import sql_text

_INSERT = insert_or_ignore(decisions)
_GET = select(decisions).where(decisions.c.turn_id == bindparam("turn"))


class Decisions:
    """The `decisions` table."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._insert = database.pick(_INSERT)

    def write(self, connection: Transaction, record: RuntimeDecisionRecord) -> bool:
        """Effect: keep the record; False if the turn has one."""
        values: dict[str, object] = record.model_dump(mode="python", exclude={"usage"})
        values |= record.usage.model_dump(exclude={"estimated"})  # the spends say it
        values |= {
            "ending": record.ending.value,
            "stop_reason": record.stop_reason.value,
            "tools": [sql_text(name) for name in record.tools],
            "prompt_tags": [sql_text(tag) for tag in record.prompt_tags],
        }
        return connection.write(self._insert, values) == 1

    def get(self, turn_id: str) -> RuntimeDecisionRecord | None:
        found = self._db.first(_GET, {"turn": turn_id})
        if found is None:
            return None
        values = {name: value for name, value in found.items() if name not in ("row", "created_at")}
        usage = {name: values.pop(name) for name in TokenUsage.model_fields if name in values}
        return RuntimeDecisionRecord.model_validate(values | {"usage": usage})
