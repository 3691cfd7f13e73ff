"""Brakes: holds, readiness flags and cancels that keep a turn from making changes; and deleted responses."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from sqlalchemy import ColumnElement, Float, and_, bindparam, delete, exists, null, or_, select, update

from brainq.adapters.sql.database import Database, Transaction
from brainq.adapters.sql.prepared import Record
from brainq.adapters.sql.statements import insert_or_ignore
from brainq.adapters.sql.tables import brakes, turns
from brainq.adapters.sql.tables.types import utc_after, utc_now
from brainq.contracts.people import Brake, BrakeKind, HoldSpec, cancel_brake_id

_B = brakes.c
_AFTER = utc_after(bindparam("seconds", type_=Float()))
_TIMED = insert_or_ignore(brakes, fixed={"ends_at": _AFTER})
_ENDLESS = insert_or_ignore(brakes, fixed={"ends_at": null()})
_RELEASED = insert_or_ignore(brakes, fixed={"ends_at": null(), "over_at": utc_now()})
_STANDS = _B.over_at.is_(None)
_HERE = and_(_B.session_id == bindparam("session"), _B.brake_id == bindparam("brake"), _STANDS)
_OVER = update(brakes).where(_HERE).values(over_at=utc_now())
_THOSE_RELEASED = select(_B.brake_id).where(
    _B.session_id == bindparam("session"), _B.brake_id.in_(bindparam("brakes", expanding=True)), _B.over_at.is_not(None)
)
_WITHDRAW = delete(brakes).where(_HERE)
_FORGET = update(brakes).where(_B.turn_id == bindparam("turn")).values(reason="")
_TAKEN = (
    update(brakes).where(_HERE, _B.turn_id.is_(None)).values(turn_id=bindparam("turn"), ends_at=utc_after(_B.timeout_s))
)
_LIFT = (
    update(brakes)
    .where(_B.session_id == bindparam("session"), _B.turn_id == bindparam("turn"), _B.kind == "flag", _STANDS)
    .values(over_at=utc_now())
)
_WHOLE = select(
    _B.row,
    _B.kind,
    _B.brake_id,
    _B.session_id,
    _B.turn_id,
    _B.reason,
    _B.on_timeout,
    _B.timeout_s,
    _B.ends_at,
    utc_now().label("now"),
).where(_STANDS)
_OF = _WHOLE.where(
    _B.session_id == bindparam("session"), or_(_B.turn_id.is_(None), _B.turn_id == bindparam("turn"))
).order_by(_B.row)
_GET = _WHOLE.where(_HERE)
_DELETED = select(_B.row).where(_B.turn_id == bindparam("turn"), _B.kind == "deleted").limit(1)
_OF_TURNS = _WHOLE.where(_B.row > bindparam("after"), _B.turn_id.is_not(None)).order_by(_B.row).limit(bindparam("most"))
_CLOSE = (
    update(brakes)
    .where(
        _STANDS,
        _B.row > bindparam("after"),
        _B.row <= bindparam("last"),
        exists().where(turns.c.turn_id == _B.turn_id, turns.c.ended_at.is_not(None)),
    )
    .values(over_at=utc_now())
)


class Brakes:
    """The `brakes` table. A brake is in force until it is over; that is final."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._timed = database.pick(_TIMED)
        self._endless = database.pick(_ENDLESS)
        self._released = database.pick(_RELEASED)

    def hold(self, session_id: str, turn_id: str, spec: HoldSpec) -> None:
        self._db.put(self._timed, {**_brake_row("hold", session_id, turn_id, spec), "seconds": spec.timeout_s})

    def flag(self, session_id: str, spec: HoldSpec) -> None:
        """Add a readiness flag to a session. Its time starts when a turn takes it."""
        self._db.put(self._endless, _brake_row("flag", session_id, None, spec))

    def cancel(self, session_id: str, turn_id: str, reason: str) -> None:
        """Record a cancel of a turn. A second cancel of the turn changes nothing."""
        spec = HoldSpec(id=cancel_brake_id(turn_id), reason=reason, timeout_s=0.0, on_timeout="cancel")
        self._db.put(self._endless, _brake_row("cancel", session_id, turn_id, spec))

    def delete_response(self, session_id: str, turn_id: str) -> bool:
        """Record that the turn's response was deleted. Returns False if it was deleted before.

        The row is never in force, because builds that do not know this kind read all brakes in force.
        """
        spec = HoldSpec(id=f"deleted:{turn_id}", timeout_s=0.0)
        return self._db.write(self._released, _brake_row("deleted", session_id, turn_id, spec)) == 1

    def is_response_deleted(self, turn_id: str) -> bool:
        return self._db.first(_DELETED, {"turn": turn_id}) is not None

    def assign_flag(self, session_id: str, flag_id: str, turn_id: str) -> bool:
        """Assign a flag to a turn. Returns False, and changes nothing, if it is assigned or over."""
        return self._db.put(_TAKEN, {"session": session_id, "brake": flag_id, "turn": turn_id}) == 1

    def end(self, session_id: str, brake_id: str) -> bool:
        """End a brake. Returns False if it was not in force."""
        return self._db.write(_OVER, {"session": session_id, "brake": brake_id}) == 1

    def released(self, session_id: str, turn_id: str, brake_id: str) -> None:
        """Record the release of a hold that came with the turn's request or an input and therefore has no row."""
        spec = HoldSpec(id=brake_id, timeout_s=0.0)
        self._db.put(self._released, _brake_row("hold", session_id, turn_id, spec))

    def those_released(self, session_id: str, brake_ids: Sequence[str]) -> set[str]:
        """Return those of the given brakes that are over."""
        found = self._db.all(_THOSE_RELEASED, {"session": session_id, "brakes": list(brake_ids)})
        return {str(row["brake_id"]) for row in found}

    def withdraw(self, session_id: str, brake_id: str) -> None:
        """Delete a brake whose turn does not exist."""
        self._db.put(_WITHDRAW, {"session": session_id, "brake": brake_id})

    def lift(self, session_id: str, turn_id: str) -> int:
        """End the turn's flags because a newer input decides its readiness. Returns how many there were."""
        return self._db.put(_LIFT, {"session": session_id, "turn": turn_id})

    def of_turn(self, session_id: str, turn_id: str) -> list[Brake]:
        """Return the turn's brakes in force and its session's unassigned flags, oldest first."""
        return [_read_brake(row) for row in self._db.all(_OF, {"session": session_id, "turn": turn_id})]

    def is_in_force(self, session_id: str, brake_id: str) -> bool:
        return self._db.first(_GET, {"session": session_id, "brake": brake_id}) is not None

    def of_turns(self, after_row: int, limit: int) -> list[tuple[int, Brake]]:
        """Return (row, brake) of all brakes in force on turns, in row order.

        On Postgres a row may become visible after a higher one while its transaction lasts.
        """
        found = self._db.all(_OF_TURNS, {"after": after_row, "most": limit})
        return [(int(row["row"]), _read_brake(row)) for row in found]

    def close(self, after_row: int, last_row: int) -> int:
        """Mark the brakes in these rows whose turns have ended as over. Returns how many there were."""
        return self._db.put(_CLOSE, {"after": after_row, "last": last_row})

    def forget(self, connection: Transaction, turn_id: str) -> None:
        """Effect: remove the reasons of the turn's brakes."""
        connection.write(_FORGET, {"turn": turn_id})


def brake_in_force(turn: ColumnElement[str]) -> ColumnElement[bool]:
    """Return the condition that a brake keeps the turn's calls from starting: a brake with an automatic release counts
    until then, any other until it is over."""
    return exists().where(_B.turn_id == turn, _STANDS, or_(_B.on_timeout != "release", _B.ends_at > utc_now()))


def _brake_row(
    kind: BrakeKind | Literal["deleted"], session_id: str, turn_id: str | None, spec: HoldSpec
) -> dict[str, object]:
    return {
        "kind": kind,
        "session_id": session_id,
        "turn_id": turn_id,
        "brake_id": spec.id,
        "on_timeout": spec.on_timeout,
        "timeout_s": spec.timeout_s,
        "reason": spec.reason,
    }


def _read_brake(found: Record) -> Brake:
    ends_at: datetime | None = found["ends_at"]
    now: datetime = found["now"]
    remaining_s = float(found["timeout_s"]) if ends_at is None else (ends_at - now).total_seconds()
    return Brake(
        kind=found["kind"],
        id=found["brake_id"],
        session_id=found["session_id"],
        turn_id=found["turn_id"],
        reason=found["reason"],
        on_timeout=found["on_timeout"],
        timeout_s=found["timeout_s"],
        remaining_s=remaining_s,
    )
