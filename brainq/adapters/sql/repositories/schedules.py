"""Schedules: turns that start at a time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import BigInteger, and_, bindparam, case, delete, func, or_, select, update

from brainq.adapters.sql.database import UNREADABLE, Database, Transaction
from brainq.adapters.sql.prepared import Record
from brainq.adapters.sql.statements import in_sessions, insert_into
from brainq.adapters.sql.tables import schedules
from brainq.contracts.ids import ALL_SESSIONS, PREFIX_BOUNDARY, prefix_upper_bound, tenant_of
from brainq.contracts.schedule import ScheduleRow

_S = schedules.c
_NAMED = _S.name == bindparam("sought")
_GET = select(schedules).where(_NAMED)
_DUE = (
    select(schedules)
    .where(_S.paused == 0, _S.next_ms <= bindparam("now_ms", type_=BigInteger()))
    .order_by(_S.next_ms, _S.row)
    .limit(bindparam("most"))
    .offset(bindparam("behind"))
)
# A runner that read the row before the timing changed must not advance it by the old timing.
_MOVE = (
    update(schedules)
    .where(
        _S.schedule_id == bindparam("sought"),
        _S.paused == 0,
        _S.next_ms == bindparam("was_ms", type_=BigInteger()),
        _S.timing == bindparam("was_timing"),
        _S.zone == bindparam("was_zone"),
        _S.start_ms == bindparam("was_start_ms", type_=BigInteger()),
    )
    .values(
        next_ms=bindparam("next_ms"),
        last_due_ms=bindparam("was_ms", type_=BigInteger()),
        last_turn_id=case(
            (bindparam("turn_id", type_=_S.last_turn_id.type) != "", bindparam("turn_id", type_=_S.last_turn_id.type)),
            else_=_S.last_turn_id,
        ),
        note=bindparam("note"),
    )
)
_RUNS, _PAUSED, _PAUSED_WHILE_DUE = range(3)
"""The values of `paused`. A run that was due before the pause is kept; runs that become due during the pause are
skipped.
"""
_IS_DUE = _S.next_ms <= bindparam("now_ms", type_=BigInteger())
_PAUSE = (
    update(schedules).where(_NAMED, _S.paused == _RUNS).values(paused=case((_IS_DUE, _PAUSED_WHILE_DUE), else_=_PAUSED))
)
_RESUME = (
    update(schedules)
    .where(_NAMED, _S.paused != _RUNS)
    .values(
        paused=_RUNS,
        next_ms=case((_S.paused == _PAUSED_WHILE_DUE, _S.next_ms), else_=bindparam("next_ms", type_=BigInteger())),
        note=case((_S.paused == _PAUSED_WHILE_DUE, _S.note), else_=bindparam("note", type_=_S.note.type)),
    )
)
_REMOVE = delete(schedules).where(_NAMED)
# The future runs of one tenant, without the schedule that is being set. `:` is the tenant of names without a colon.
_OTHERS = (
    select(func.count().label("others"))
    .select_from(schedules)
    .where(_S.next_ms.is_not(None), _S.name != bindparam("sought"))
)
_OF_TENANT = _OTHERS.where(_S.name >= bindparam("first"), _S.name < bindparam("beyond"))
_OF_NO_TENANT = _OTHERS.where(_S.name.not_like("%:%"))
# SQLite has one writer. On Postgres, two that count at the same time would both find room for one more.
_ALONE = select(func.pg_advisory_xact_lock(func.hashtext(bindparam("tenant"))))
_SET = ("timing", "zone", "session_id", "request_json", "on_running", "missed")
"""The columns that are replaced when a schedule is set again. Its id, its newest run and whether it
is paused are kept.
"""


def _set_again(new: Any) -> dict[str, Any]:
    """Return the values of a schedule that is set again. `new` is what the insert would have written.

    A run that is due is kept, so a process that sets its schedules at each start loses no run. If the timing is the
    same, future runs are kept as well.
    """
    same_times = and_(
        _S.timing == new.timing, _S.zone == new.zone, or_(_S.timing != "once", _S.start_ms == new.start_ms)
    )
    return {name: new[name] for name in _SET} | {
        "start_ms": case((same_times, _S.start_ms), else_=new.start_ms),
        "next_ms": case((or_(same_times, _IS_DUE), _S.next_ms), else_=new.next_ms),
        "note": case((same_times, _S.note), else_=new.note),
    }


class Schedules:
    """The `schedules` table."""

    def __init__(self, database: Database) -> None:
        self._db = database
        insert = insert_into(database.dialect, schedules)
        self._put = insert.on_conflict_do_update(index_elements=["name"], set_=_set_again(insert.excluded)).inline()

    def put(self, row: ScheduleRow, now_ms: int, max_others: int | None = None) -> bool:
        """Store a schedule, or set the existing one of this name again. Returns False if the tenant already has
        `max_others` other schedules with future runs."""
        values = row.model_dump(exclude={"request"})
        values |= {"request_json": json.dumps(row.request), "paused": int(row.paused), "now_ms": now_ms}
        if max_others is None:
            return self._db.put(self._put, values) == 1
        with self._db.transaction() as connection:
            if self._others(connection, row.name) >= max_others:
                return False
            return connection.write(self._put, values) == 1

    def _others(self, connection: Transaction, name: str) -> int:
        tenant = tenant_of(name)
        if self._db.dialect != "sqlite":
            connection.all(_ALONE, {"tenant": f"schedules {tenant}"})
        if tenant == PREFIX_BOUNDARY:
            found = connection.first(_OF_NO_TENANT, {"sought": name})
        else:
            of_tenant = {"sought": name, "first": tenant, "beyond": prefix_upper_bound(tenant)}
            found = connection.first(_OF_TENANT, of_tenant)
        assert found is not None
        return found["others"]

    def get(self, name: str) -> ScheduleRow | None:
        found = self._db.first(_GET, {"sought": name})
        return None if found is None else _row(found)

    def list(
        self, names: Sequence[str], limit: int, sessions: Sequence[str] = (ALL_SESSIONS,), after: str = ""
    ) -> list[ScheduleRow]:
        """Return schedules after the name `after`, whose names and sessions have one of these prefixes; `*` is any."""
        own = and_(in_sessions(_S.name, names), in_sessions(_S.session_id, sessions), _S.name > after)
        page = select(schedules).where(own).order_by(_S.name).limit(limit)
        return [_row(found) for found in self._db.all(page, {})]

    def due(self, now_ms: int, most: int) -> list[ScheduleRow]:
        """Return due schedules, longest due first. A schedule whose encryption key is missing stays
        due and is omitted."""
        rows: list[ScheduleRow] = []
        behind = 0
        while True:
            page = self._db.readable(_DUE, {"now_ms": now_ms, "most": most, "behind": behind}, "name")
            rows += [_row(found) for found in page if UNREADABLE not in found]
            behind += len(page)
            if len(page) < most or len(rows) >= most:
                return rows[:most]

    def move(self, row: ScheduleRow, next_ms: int | None, *, turn_id: str = "", note: str = "") -> bool:
        """Move a schedule from the due time of `row` to the next one. Returns False if another process did so, or if
        the schedule was paused or got another timing since `row` was read."""
        was = {"was_ms": row.next_ms, "was_timing": row.timing, "was_zone": row.zone, "was_start_ms": row.start_ms}
        values = {"sought": row.schedule_id, **was, "next_ms": next_ms, "turn_id": turn_id, "note": note}
        return self._db.write(_MOVE, values) == 1

    def pause(self, name: str, now_ms: int) -> bool:
        """Pause a schedule. Returns False if it is paused or unknown."""
        return self._db.write(_PAUSE, {"sought": name, "now_ms": now_ms}) == 1

    def resume(self, name: str, next_ms: int | None, note: str) -> bool:
        """Resume a schedule with `next_ms`, or with the run that was due when it was paused. Returns False if the
        schedule is not paused."""
        return self._db.write(_RESUME, {"sought": name, "next_ms": next_ms, "note": note}) == 1

    def remove(self, name: str) -> bool:
        """Delete a schedule. Turns that it has started stay."""
        return self._db.write(_REMOVE, {"sought": name}) == 1


def _row(found: Record) -> ScheduleRow:
    return ScheduleRow(
        **{name: found[name] for name in ScheduleRow.model_fields if name not in ("request", "paused")},
        request=json.loads(found["request_json"] or "{}"),  # The request is {} if its key was removed permanently.
        paused=bool(found["paused"]),
    )
