"""Stops: what operators have paused or forbidden."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import get_args

from sqlalchemy import Float, bindparam, delete, null, or_, select

from brainq.adapters.sql.database import Database
from brainq.adapters.sql.prepared import Record
from brainq.adapters.sql.statements import upsert
from brainq.adapters.sql.tables.operator_tables import OPERATOR_TABLES, stops
from brainq.adapters.sql.tables.types import utc_after, utc_now
from brainq.contracts.stop import Stop, StopKind

_S = stops.c
_KEYS = ("kind", "name", "tenant")
_COPIED = ("mode", "stopped_by", "reason", "ends_at")
_AFTER = utc_after(bindparam("seconds", type_=Float()))
_TIMED = upsert(stops, _KEYS, copied=_COPIED, changed={"since": utc_now()}, fixed={"ends_at": _AFTER})
_ENDLESS = upsert(stops, _KEYS, copied=_COPIED, changed={"since": utc_now()}, fixed={"ends_at": null()})
_LIFT = delete(stops).where(
    _S.kind == bindparam("of_kind", type_=_S.kind.type),
    _S.name == bindparam("of_name", type_=_S.name.type),
    _S.tenant == bindparam("of_tenant", type_=_S.tenant.type),
)
_STANDING = (
    select(stops, utc_now().label("now"))
    .where(or_(_S.ends_at.is_(None), _S.ends_at > utc_now()))
    .order_by(_S.kind, _S.name, _S.tenant)
)
_OVER = delete(stops).where(_S.ends_at <= utc_now())


class Stops:
    """The `stops` table, which is created with the first stop. It has few rows."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._timed, self._endless = database.pick(_TIMED), database.pick(_ENDLESS)

    def put(self, stop: Stop) -> None:
        """Put a stop in force. It replaces a stop of the same name."""
        OPERATOR_TABLES.make(self._db.engine, stops)
        values: dict[str, object] = {
            "kind": stop.kind,
            "name": stop.name,
            "tenant": stop.tenant,
            "mode": stop.mode,
            "stopped_by": stop.by,
            "reason": stop.reason,
        }
        if stop.ends_in_s is None:
            self._db.put(self._endless, values)
        else:
            self._db.put(self._timed, {**values, "seconds": stop.ends_in_s})

    def lift(self, stop: Stop) -> bool:
        """Lift a stop. Returns False if there is none."""
        if not OPERATOR_TABLES.has(self._db.engine, stops):
            return False
        given = {"of_kind": stop.kind, "of_name": stop.name, "of_tenant": stop.tenant}
        return self._db.write(_LIFT, given) == 1

    def standing(self) -> tuple[Stop, ...]:
        """Return the stops in force, by kind and name."""
        if not OPERATOR_TABLES.has(self._db.engine, stops):
            return ()
        found: Sequence[Record] = self._db.all(_STANDING, {})
        return tuple(_stop(row) for row in found if row["kind"] in get_args(StopKind))

    def forget_ended(self) -> int:
        """Delete stops whose time is over. Returns how many."""
        return self._db.write(_OVER, {}) if OPERATOR_TABLES.has(self._db.engine, stops) else 0


def _stop(row: Record) -> Stop:
    ends_at: datetime | None = row["ends_at"]
    return Stop(
        kind=row["kind"],
        name=row["name"],
        tenant=row["tenant"],
        mode=row["mode"],
        by=row["stopped_by"],
        reason=row["reason"],
        since=row["since"],
        ends_in_s=None if ends_at is None else max(0.0, (ends_at - row["now"]).total_seconds()),
    )
