"""Calls: to start a non-read call is to insert its intent here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Unpack

from sqlalchemy import Boolean, and_, bindparam, case, exists, null, or_, select, true, update

from brainq.contracts.call import NOT_STARTED, Intent, ToolFailure, ToolOutcome, ToolSuccess
from brainq.contracts.rows import CallRow, StartedWord, VoidResult
from brainq.contracts.status import Effect
from brainq.store.database import Database, Record, Transaction
from brainq.store.repositories.brakes import brake_in_force
from brainq.store.statements import insert_or_ignore, insert_unless
from brainq.store.tables import calls, turns
from brainq.store.tables.types import utc_now
from brainq.store.text import sql_json

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
# A redacted call (its intent has no arguments) keeps its outcome only while its turn lives: a rescue may need it.
_ENDED = exists().where(turns.c.turn_id == _C.turn_id, turns.c.ended_at.is_not(None))
_OUTCOME = case((and_(_C.args_json.is_(None), _ENDED), null()), else_=bindparam("content", type_=_C.outcome_json.type))
_RECORD = (
    update(calls).where(_HERE, _C.state == "intent").values(state="done", ended_at=utc_now(), outcome_json=_OUTCOME)
)
_UNSTARTED = update(calls).where(_HERE, _C.state == "intent").values(state="void")
# A definite end replaces `unknown` and `timeout`, and the late end of a call that timed out is evidence. That an end
# was late may be known only after it was recorded.
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
        """Insert the intent. False: this attempt was started or voided before, so do not run it.

        unless_braked   False, too, while SQL has a brake in force on the turn
        """
        statement = self._start if unless_braked else self._insert
        values = {**intent, "effect": intent["effect"].value, "state": "intent"}
        return self._db.write(statement, values, durably=True) == 1

    def void(
        self, *, turn_id: str, call_id: str, attempt: int, session_id: str, tool: str, effect: Effect
    ) -> VoidResult:
        """Take the attempt's row so that it can never start, or learn that it did."""
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
            if self._db.write(self._insert, values, durably=True):
                return VoidResult("void")
            found = self._db.first(_STATE, {"turn": turn_id, "call": call_id, "nth": attempt})
            if found is not None:  # None: deleted between the two statements
                return _void_result(found)

    def void_unstarted(self, turn_id: str, call_id: str, attempt: int) -> bool:
        """Make an intent void whose attempt never started, and never will; False where it is no longer an intent."""
        place = {"turn": turn_id, "call": call_id, "nth": attempt}
        return self._db.write(_UNSTARTED, place, durably=True) == 1

    def record_outcome(self, turn_id: str, call_id: str, attempt: int, outcome: ToolOutcome, late: bool) -> bool:
        """Write how a started attempt ended; False if nothing changed.

        The first end stays, but a success or failure that comes after `timeout` or `unknown` replaces it and
        is marked late, and one that is recorded again as late is marked so. An attempt without an intent (a read, or
        a void) has no row to write to. Of a redacted call of a turn that has ended, only the kind of its outcome is
        kept.
        """
        values = {
            "turn": turn_id,
            "call": call_id,
            "nth": attempt,
            "outcome_kind": outcome.kind,
            "content": sql_json(outcome),
        }
        if self._db.write(_RECORD, values | {"late": late}):
            return True
        if not isinstance(outcome, ToolSuccess | ToolFailure):
            return False
        columns = {"late_after_all": late, "outcome_kind_given": outcome.kind}
        return self._db.write(_RECORD_LATE, values | columns) == 1

    def settle(self, connection: Transaction, turn_id: str, ended: Mapping[str, str]) -> None:
        """Effect: calls (call_id -> outcome kind) that ended by a result from outside get that kind. Its
        sender may have died before it could write it down. What the result was, the transcript has."""
        for call_id, kind in ended.items():
            connection.write(_SETTLE, {"turn": turn_id, "call": call_id, "kind": kind})

    def forget(self, connection: Transaction, turn_id: str) -> None:
        """Effect: the turn's calls without arguments and results; that they ran, and how they ended, stays."""
        connection.write(_FORGET, {"turn": turn_id})

    def of_turn(self, turn_id: str) -> list[CallRow]:
        """All rows of a turn, in the order they were written."""
        return [_call_row(found) for found in self._db.all(_OF, {"turn": turn_id})]

    def started(self, turn_id: str) -> StartedWord:
        """Whether a non-read call of the turn has started. An intent whose worker reported that nothing followed does
        not count."""
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
