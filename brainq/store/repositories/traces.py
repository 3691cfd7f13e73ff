"""Traces: the calls of a turn as they stood when it was over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import bindparam, func, select

from brainq.contracts.trace import ToolTraceEntry
from brainq.store.database import Database, Transaction
from brainq.store.statements import ManyRows
from brainq.store.tables import traces

_T = traces.c
_KEPT = [
    name for name in ToolTraceEntry.model_fields if name in _T
]  # neither lanes nor owner: they meant then
_OF = (
    select(*(_T[name] for name in _KEPT))
    .where(_T.turn_id == bindparam("turn"))
    .order_by(_T.step, func.length(_T.call_id), _T.call_id)  # c2-9 before c2-10
)


class Traces:
    """The `traces` table."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._rows = ManyRows(traces, database.dialect)

    def write(
        self,
        connection: Transaction,
        *,
        session_id: str,
        turn_id: str,
        entries: Sequence[ToolTraceEntry],
        redact: bool,
    ) -> None:
        """Effect: keep the calls' traces; those kept before stay. `redact` leaves out `detail`, which may
        quote arguments."""
        self._rows.insert(connection, [_values(session_id, turn_id, entry, redact) for entry in entries])

    def of(self, turn_id: str) -> list[ToolTraceEntry]:
        """By step, in the model's order; empty before the finalizer's `log` step."""
        return [ToolTraceEntry.model_validate(dict(found)) for found in self._db.all(_OF, {"turn": turn_id})]


def _values(session_id: str, turn_id: str, entry: ToolTraceEntry, redact: bool) -> dict[str, Any]:
    """More than the columns: the table takes what it has."""
    values = {**vars(entry), "turn_id": turn_id, "session_id": session_id}
    values["effect"], values["status"] = entry.effect.value, entry.status.value
    if redact:
        values["detail"] = ""
    return values
