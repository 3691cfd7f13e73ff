"""The audit log: the acts of people and tokens. A row is added after an act and never changed."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import bindparam, select

from brainq.adapters.sql.database import Database
from brainq.adapters.sql.statements import in_sessions, insert_into
from brainq.adapters.sql.tables.operator_tables import OPERATOR_TABLES, acts
from brainq.contracts.act import Act

_A = acts.c


class Acts:
    """The `acts` table, which is created with the first act."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._insert = insert_into(database.dialect, acts).inline()

    def add(self, *, who: str, source: str, act: str, session_id: str, turn_id: str, subject: str, reason: str) -> None:
        OPERATOR_TABLES.make(self._db.engine, acts)
        values = {"who": who, "source": source, "act": act, "session_id": session_id, "turn_id": turn_id}
        self._db.write(self._insert, {**values, "subject": subject, "reason": reason})

    def list(
        self,
        limit: int,
        after: int | None = None,
        *,
        who: str | None = None,
        act: str | None = None,
        turn: str | None = None,
        prefixes: Sequence[str] | None = None,
    ) -> tuple[Act, ...]:
        """Return acts, newest first, with an id below `after`, of sessions with one of the prefixes."""
        if not OPERATOR_TABLES.has(self._db.engine, acts):
            return ()
        given: dict[str, object] = {"most": limit}
        asked = select(acts)
        for name, column, value in (("of_who", _A.who, who), ("of_act", _A.act, act), ("of_turn", _A.turn_id, turn)):
            if value is not None:
                asked, given[name] = asked.where(column == bindparam(name, type_=column.type)), value
        if after is not None:
            asked, given["before"] = asked.where(_A.row < bindparam("before", type_=_A.row.type)), after
        if prefixes is not None:
            asked = asked.where(in_sessions(_A.session_id, prefixes))
        found = self._db.all(asked.order_by(_A.row.desc()).limit(bindparam("most")), given)
        return tuple(
            Act(id=row["row"], **{name: row[name] for name in Act.model_fields if name != "id"}) for row in found
        )
