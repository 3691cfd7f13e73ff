"""Traces: the calls of a turn as they stood when it was over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import and_, bindparam, func, or_, select

from brainq.contracts.ids import call_place
from brainq.contracts.trace import ToolTraceEntry
from brainq.store.database import Database, Record, Transaction
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
_PAGE = _OF.limit(bindparam("limit"))
_size, _its_size = func.length(_T.call_id), func.length(bindparam("call"))
_PAGE_AFTER = _PAGE.where(
    or_(
        _T.step > bindparam("step"),
        and_(
            _T.step == bindparam("step"),
            or_(_size > _its_size, and_(_size == _its_size, _T.call_id > bindparam("call"))),
        ),
    )
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
        return _entries(self._db.all(_OF, {"turn": turn_id}))

    def page(self, turn_id: str, limit: int, after: str | None) -> list[ToolTraceEntry]:
        """The first so many; of those behind the call `after`, where one is given."""
        values: dict[str, object] = {"turn": turn_id, "limit": limit}
        if after is None:
            return _entries(self._db.all(_PAGE, values))
        step, _ = call_place(after)
        return _entries(self._db.all(_PAGE_AFTER, {**values, "call": after, "step": step}))


def _entries(found: Sequence[Record]) -> list[ToolTraceEntry]:
    return [ToolTraceEntry.model_validate(dict(row)) for row in found]


def _values(session_id: str, turn_id: str, entry: ToolTraceEntry, redact: bool) -> dict[str, Any]:
    """More than the columns: the table takes what it has."""
    values = {**vars(entry), "turn_id": turn_id, "session_id": session_id}
    values["effect"], values["status"] = entry.effect.value, entry.status.value
    if redact:
        values["detail"] = ""
    return values
