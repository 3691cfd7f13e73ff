"""Calls: a non-read call starts by inserting its intent here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Unpack

from sqlalchemy import Boolean, and_, bindparam, case, exists, null, or_, select, true, update
from sqlalchemy.exc import DBAPIError

from brainq.adapters.sql.database import Database, Transaction
from brainq.adapters.sql.prepared import Record
from brainq.adapters.sql.repositories.brakes import brake_in_force
from brainq.adapters.sql.statements import insert_or_ignore, insert_unless
from brainq.adapters.sql.tables import calls, turns
from brainq.adapters.sql.tables.types import utc_now
from brainq.adapters.sql.text import sql_json
from brainq.contracts.call import NOT_STARTED, Intent, ToolFailure, ToolOutcome, ToolSuccess
from brainq.contracts.rows import CallRow, StartedWord, VoidResult
from brainq.contracts.status import Effect

_C = calls.c
_INSERT = insert_or_ignore(calls)
_START = insert_unless(
    calls,
    (
        *("turn_id", "call_id", "attempt", "session_id", "tool", "effect", "state"),
        *("args_hash", "args_json", "idempotency_key", "owner"),
    ),
    brake_in_force(bindparam("turn_id")),
)
_HERE = and_(_C.turn_id == bindparam("turn"), _C.call_id == bindparam("call"), _C.attempt == bindparam("nth"))
_STATE = select(_C.state, _C.outcome_json, _C.owner).where(_HERE)
# A redacted call (its intent has no arguments) keeps its outcome while its turn is live, because a rescue may need it.
_ENDED = exists().where(turns.c.turn_id == _C.turn_id, turns.c.ended_at.is_not(None))
_OUTCOME = case((and_(_C.args_json.is_(None), _ENDED), null()), else_=bindparam("content", type_=_C.outcome_json.type))
_RECORD = (
    update(calls).where(_HERE, _C.state == "intent").values(state="done", ended_at=utc_now(), outcome_json=_OUTCOME)
)
_UNSTARTED = update(calls).where(_HERE, _C.state == "intent").values(state="void")
# A definite outcome replaces `unknown` and `timeout`; after a timeout it is evidence of a late end. It may be known to
# be late only after it was recorded.
_RECORD_LATE = (
    update(calls)
    .where(
        _HERE,
        _C.state == "done",
        _C.late.is_(False),
        or_(
            _C.outcome_kind.in_(("unknown", "timeout")),
            and_(bindparam("late_after_all", type_=Boolean()), _C.outcome_kind == bindparam("outcome_kind_given")),
        ),
    )
    .values(late=true(), ended_at=utc_now(), outcome_json=_OUTCOME)
)
_SETTLE = (
    update(calls)
    .where(_C.turn_id == bindparam("turn"), _C.call_id == bindparam("call"), _C.state == "intent")
    .values(state="done", ended_at=utc_now(), outcome_kind=bindparam("kind"))
)
_OF = select(calls).where(_C.turn_id == bindparam("turn")).order_by(_C.row)
_FORGET = update(calls).where(_C.turn_id == bindparam("turn")).values(args_json=null(), outcome_json=null())
_NOT_VOID = select(_C.state, _C.outcome_kind, _C.outcome_json).where(
    _C.turn_id == bindparam("turn"), _C.state != "void"
)


class Calls:
    """The `calls` table."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._insert = database.pick(_INSERT)
        self._start = database.pick(_START)

    def start(self, *, unless_braked: bool = False, **intent: Unpack[Intent]) -> bool:
        """Insert the intent. Returns False if this attempt was started or voided before and must not run.

        If the connection is cut, the row shows whether it was inserted.

        unless_braked   also return False while SQL has a brake in force on the turn
        """
        statement = self._start if unless_braked else self._insert
        values = {**intent, "effect": intent["effect"].value, "state": "intent"}

        def insert() -> bool:
            return self._db.write(statement, values, durably=True) == 1

        try:
            return insert()
        except DBAPIError as cut:
            if not cut.connection_invalidated:
                raise
        place = {"turn": intent["turn_id"], "call": intent["call_id"], "nth": intent["attempt"]}
        found = self._db.first(_STATE, place)
        if found is None:
            return insert()
        # Each claim has its own owner, so this row was inserted here. A rescue may have voided it since.
        return found["state"] == "intent" and found["owner"] == intent["owner"]

    def void(
        self, *, turn_id: str, call_id: str, attempt: int, session_id: str, tool: str, effect: Effect
    ) -> VoidResult:
        """Insert the attempt's row as void, so that it can never start. Fails if the attempt has started."""
        values = {
            "turn_id": turn_id,
            "call_id": call_id,
            "attempt": attempt,
            "session_id": session_id,
            "tool": tool,
            "effect": effect.value,
            "state": "void",
            "args_hash": "",
            "idempotency_key": "",
            "owner": "",
        }
        while True:
            if self._db.put(self._insert, values, durably=True):
                return VoidResult("void")
            found = self._db.first(_STATE, {"turn": turn_id, "call": call_id, "nth": attempt})
            if found is not None:  # None: deleted between the two statements
                return _void_result(found)

    def void_unstarted(self, turn_id: str, call_id: str, attempt: int) -> bool:
        """Void the intent of an attempt that never started and never will. Returns False if it is no longer an
        intent."""
        place = {"turn": turn_id, "call": call_id, "nth": attempt}
        return self._db.put(_UNSTARTED, place, durably=True) == 1

    def record_outcome(self, turn_id: str, call_id: str, attempt: int, outcome: ToolOutcome, late: bool) -> bool:
        """Record the outcome of a started attempt. Returns False if nothing changed.

        The first outcome stays, except that a success or failure after `timeout` or `unknown` replaces it and is marked
        as late. An outcome that is recorded a second time as late is marked as well. An attempt without an intent (a
        read, or a void) has no row. For a redacted call of an ended turn, only the kind of the outcome is kept.
        """
        values = {
            "turn": turn_id,
            "call": call_id,
            "nth": attempt,
            "outcome_kind": outcome.kind,
            "content": sql_json(outcome),
        }
        if self._db.put(_RECORD, values | {"late": late}):
            return True
        if not isinstance(outcome, ToolSuccess | ToolFailure):
            return False
        columns = {"late_after_all": late, "outcome_kind_given": outcome.kind}
        return self._db.put(_RECORD_LATE, values | columns) == 1

    def settle(self, connection: Transaction, turn_id: str, ended: Mapping[str, str]) -> None:
        """Effect: record the outcome kinds (by `call_id`) of calls that ended with a result from outside, because its
        sender may have died before recording it. The transcript has the result itself."""
        for call_id, kind in ended.items():
            connection.write(_SETTLE, {"turn": turn_id, "call": call_id, "kind": kind})

    def forget(self, connection: Transaction, turn_id: str) -> None:
        """Effect: remove arguments and results from the turn's calls. Their outcomes stay."""
        connection.write(_FORGET, {"turn": turn_id})

    def of_turn(self, turn_id: str) -> list[CallRow]:
        """Return all rows of a turn, in the order in which they were written."""
        return [_call_row(found) for found in self._db.all(_OF, {"turn": turn_id})]

    def started(self, turn_id: str) -> StartedWord:
        """Return whether a non-read call of the turn has started. An intent does not count if its worker reported that
        it did not start the call."""
        rows = [found for found in self._db.all(_NOT_VOID, {"turn": turn_id}) if not _never_started(found)]
        if not rows:
            return "no"
        return "unsaid" if all(found["state"] == "intent" for found in rows) else "yes"


def _never_started(found: Record) -> bool:
    if found["outcome_kind"] != "failure" or not found["outcome_json"]:
        return False
    return json.loads(found["outcome_json"]).get("error_type") == NOT_STARTED


def _void_result(found: Record) -> VoidResult:
    if found["state"] == "done":
        return VoidResult("done", found["outcome_json"])
    return VoidResult("void") if found["state"] == "void" else VoidResult("started", owner=found["owner"])


def _call_row(found: Record) -> CallRow:
    values = dict(found)
    values["effect"] = Effect(values["effect"])
    return CallRow(**values)
