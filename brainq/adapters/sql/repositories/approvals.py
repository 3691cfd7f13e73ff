"""Approval requests and their decisions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Float, and_, bindparam, false, func, literal_column, null, or_, select, update

from brainq.adapters.sql.database import UNREADABLE, Database, Transaction
from brainq.adapters.sql.prepared import Record
from brainq.adapters.sql.statements import in_sessions, upsert
from brainq.adapters.sql.tables import approvals, turns
from brainq.adapters.sql.tables.types import UtcTimestamp, utc_after, utc_now
from brainq.contracts.ids import full_call_id
from brainq.contracts.people import Approval, ApprovalRequest, ApprovalStatus
from brainq.contracts.rows import ApprovalRow

_A = approvals.c
_PENDING = _A.state == literal_column("'pending'")  # a literal, because only then is the partial index used
_COPIED = ("session_id", "tool", "effect", "args_hash", "args_json", "reason", "expires_at")
_ASK = upsert(
    approvals,
    ("turn_id", "call_id"),
    fixed={"expires_at": utc_after(bindparam("seconds", type_=Float()))},
    copied=_COPIED,
    changed={
        "state": literal_column("'pending'"),
        "decided_at": null(),
        "decided_by": literal_column("''"),
        "comment": literal_column("''"),
        "edited": false(),
    },
    # Keep a person's decision on the same arguments, and the void state after the end of its turn.
    where=or_(
        _A.state == "pending",
        _A.state == "expired",
        and_(_A.state != "void", _A.args_hash != literal_column("excluded.args_hash")),
    ),
)
_HERE = and_(_A.turn_id == bindparam("turn"), _A.call_id == bindparam("call"))
# With what led to the request, because a person who decides reads the user's words.
_WITH_TURN = select(approvals, turns.c.message, turns.c.brain).outerjoin(turns, turns.c.turn_id == _A.turn_id)
_GET = _WITH_TURN.where(_HERE)
_OF = _WITH_TURN.where(_A.turn_id == bindparam("turn")).order_by(_A.row)
_NEWEST = _WITH_TURN.order_by(_A.row.desc()).limit(bindparam("most"))
_DECIDED_OF_OPEN = (
    select(approvals)
    .join(turns, turns.c.turn_id == _A.turn_id)
    .where(_A.row > bindparam("after"), turns.c.ended_at.is_(None), _A.state.in_(("approved", "denied")))
    .order_by(_A.row)
    .limit(bindparam("most"))
)
_DECIDE = (
    update(approvals)
    .where(_HERE, _PENDING)
    .values(decided_at=func.coalesce(bindparam("at", type_=UtcTimestamp()), utc_now()))
)
_VOID = update(approvals).where(_A.turn_id == bindparam("turn"), _PENDING).values(state="void", decided_at=utc_now())
_FORGET = update(approvals).where(_A.turn_id == bindparam("turn")).values(args_json=null(), reason="", comment="")


class Approvals:
    """The `approvals` table. An approval is `pending` until it is decided, expires or becomes void; that is final."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._ask = database.pick(_ASK)

    def request(self, rows: Sequence[ApprovalRequest]) -> None:
        """Insert the approval requests of a step in one transaction.

        A request for a call that already has one replaces it but keeps its position and `created_at`, because the step
        was re-run. A decision on the same arguments is kept.
        """
        if not rows:
            return
        with self._db.transaction() as connection:
            self.write(connection, rows)

    def write(self, connection: Transaction, rows: Sequence[ApprovalRequest]) -> None:
        """Effect of `request`: insert the approval requests."""
        connection.write_many(self._ask, [_request_row(row) for row in rows])

    def decided_of_open_turns(self, after_row: int, limit: int) -> list[ApprovalRow]:
        """Return the decided approvals of live turns after this row, in the order of their requests, including
        unreadable ones."""
        found = self._db.readable(_DECIDED_OF_OPEN, {"after": after_row, "most": limit}, "turn_id")
        return [ApprovalRow(row["row"], _read_approval(row), UNREADABLE in row) for row in found]

    def get(self, turn_id: str, call_id: str) -> Approval | None:
        found = self._db.first(_GET, {"turn": turn_id, "call": call_id})
        return None if found is None else _read_approval(found)

    def of_turn(self, turn_id: str) -> list[Approval]:
        """Return the turn's approvals in the order of their requests."""
        return [_read_approval(found) for found in self._db.all(_OF, {"turn": turn_id})]

    def row_number(self, turn_id: str, call_id: str, sessions: Sequence[str] | None = None) -> int | None:
        """Return the row number of an approval, or None if it does not exist in these sessions."""
        statement = select(_A.row).where(_HERE)
        if sessions is not None:
            statement = statement.where(in_sessions(_A.session_id, sessions))
        found = self._db.first(statement, {"turn": turn_id, "call": call_id})
        return None if found is None else int(found["row"])

    def list(
        self,
        session_id: str | None = None,
        state: str | None = None,
        limit: int = 50,
        before_row: int | None = None,
        sessions: Sequence[str] | None = None,
    ) -> list[ApprovalRow]:
        """Return approvals, newest first. Pass the row of the last one as `before_row` for the next page.

        sessions   only approvals of sessions with one of these prefixes

        This is the state in SQL: an approval that is pending here may be decided or expired in Redis.
        """
        statement = _NEWEST
        if session_id is not None:
            statement = statement.where(_A.session_id == session_id)
        if state is not None:
            statement = statement.where(_PENDING if state == "pending" else _A.state == state)
        if before_row is not None:
            statement = statement.where(_A.row < before_row)
        if sessions is not None:
            statement = statement.where(in_sessions(_A.session_id, sessions))
        return [ApprovalRow(found["row"], _read_approval(found)) for found in self._db.all(statement, {"most": limit})]

    def decided(self, turn_id: str, call_id: str, status: ApprovalStatus) -> bool:
        """Record a decision.

        Returns False, and changes nothing, if the approval is not pending. Arguments that were not edited stay
        unchanged.
        """
        decision = _decision_columns(status)
        return decision is not None and self._db.write(_DECIDE, {"turn": turn_id, "call": call_id, **decision}) == 1

    def settle(self, connection: Transaction, turn_id: str, states: Mapping[str, ApprovalStatus]) -> None:
        """Effect: settle the pending approvals of an ended turn with their states in Redis (`call_id` to state).

        Approvals that Redis does not know, or has as pending, become void. Takes one statement if nothing was decided.
        """
        for call_id, status in states.items():
            decision = _decision_columns(status)
            if decision is not None:
                connection.write(_DECIDE, {"turn": turn_id, "call": call_id, **decision})
        connection.write(_VOID, {"turn": turn_id})

    def forget(self, connection: Transaction, turn_id: str) -> None:
        """Effect: remove arguments, comments and reasons from the turn's approvals, because a reason may quote
        arguments. The decisions and their authors stay."""
        connection.write(_FORGET, {"turn": turn_id})


def _request_row(row: ApprovalRequest) -> dict[str, object]:
    values: dict[str, object] = asdict(row)
    values["effect"], values["seconds"] = row.effect.value, values.pop("timeout_s")
    return values | {"state": "pending", "decided_by": "", "comment": ""}


def _decision_columns(status: ApprovalStatus) -> dict[str, object] | None:
    """Return the columns of a decision, with the arguments if they were edited. Returns None without a decision."""
    if status.state not in ("approved", "denied", "expired"):
        return None
    values: dict[str, object] = {
        "state": status.state,
        "decided_by": status.by,
        "comment": status.why,
        "edited": status.edited,
        "at": _utc_instant(status.decided_at_ms),
    }
    if status.edited:
        arguments = None if status.arguments is None else json.dumps(status.arguments)
        values |= {"args_hash": status.args_hash, "args_json": arguments}
    return values


def _utc_instant(redis_ms: int | None) -> datetime | None:
    return None if redis_ms is None else datetime.fromtimestamp(redis_ms / 1000, UTC)


def _read_approval(found: Record) -> Approval:
    values: dict[str, Any] = dict(found)
    del values["row"]
    if values.pop(UNREADABLE, ""):
        values |= {"reason": "", "comment": ""}
    arguments = values.pop("args_json")
    values["message"] = values.get("message") or ""
    values["id"] = full_call_id(values["turn_id"], values["call_id"])
    values["arguments"] = None if arguments is None else json.loads(arguments)
    return Approval.model_validate(values)
