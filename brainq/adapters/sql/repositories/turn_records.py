"""The records of an ended turn: the trace of its calls, the usage of its model calls, its decision record, and its
finalizer steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Float,
    Table,
    and_,
    bindparam,
    func,
    literal_column,
    or_,
    select,
    update,
)

from brainq.adapters.sql.database import Database, Transaction
from brainq.adapters.sql.prepared import Record
from brainq.adapters.sql.statements import ManyRows, insert_or_ignore, upsert
from brainq.adapters.sql.tables import (
    approvals,
    decisions,
    deliveries,
    finalizer_steps,
    judgements,
    spends,
    traces,
    turns,
)
from brainq.adapters.sql.tables.types import utc_now
from brainq.adapters.sql.text import sql_text
from brainq.contracts.call import ToolTraceEntry
from brainq.contracts.evaluation import RuntimeDecisionRecord
from brainq.contracts.fleet import GivenUp
from brainq.contracts.ids import parse_call_id
from brainq.contracts.model import Spend, TokenUsage
from brainq.contracts.rows import StepRow

_T = traces.c
_TRACE_COLUMNS = [
    name for name in ToolTraceEntry.model_fields if name in _T
]  # neither lanes nor owner: they meant then
_TRACE_OF_TURN = (
    select(*(_T[name] for name in _TRACE_COLUMNS))
    .where(_T.turn_id == bindparam("turn"))
    .order_by(_T.step, func.length(_T.call_id), _T.call_id)  # c2-9 before c2-10
)
_PAGE = _TRACE_OF_TURN.limit(bindparam("limit"))
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
        self._rows = ManyRows(traces, database)

    def write(
        self, connection: Transaction, *, session_id: str, turn_id: str, entries: Sequence[ToolTraceEntry], redact: bool
    ) -> None:
        """Effect: store the calls' traces. Existing ones stay unchanged. `redact` omits `detail`, which may quote
        arguments."""
        self._rows.insert(connection, [_trace_values(session_id, turn_id, entry, redact) for entry in entries])

    def of_turn(self, turn_id: str) -> list[ToolTraceEntry]:
        """Return the traces by step, in the model's order. It is empty before the finalizer's `log` step."""
        return _trace_entries(self._db.all(_TRACE_OF_TURN, {"turn": turn_id}))

    def page(self, turn_id: str, limit: int, after: str | None) -> list[ToolTraceEntry]:
        """Return the first `limit` traces, or those after the call `after`."""
        values: dict[str, object] = {"turn": turn_id, "limit": limit}
        if after is None:
            return _trace_entries(self._db.all(_PAGE, values))
        step, _ = parse_call_id(after)
        return _trace_entries(self._db.all(_PAGE_AFTER, {**values, "call": after, "step": step}))


def _trace_entries(found: Sequence[Record]) -> list[ToolTraceEntry]:
    return [ToolTraceEntry.model_validate(dict(row)) for row in found]


def _trace_values(session_id: str, turn_id: str, entry: ToolTraceEntry, redact: bool) -> dict[str, Any]:
    """Return a trace's values; the table ignores fields without a column."""
    values = {**vars(entry), "turn_id": turn_id, "session_id": session_id}
    values["effect"], values["status"] = entry.effect.value, entry.status.value
    if redact:
        values["detail"] = ""
    return values


_SPENDS_OF_TURN = (
    select(*(spends.c[name] for name in Spend.model_fields))
    .where(spends.c.turn_id == bindparam("turn"))
    .order_by(spends.c.seq)
)


# A model call without a price adds no money. A turn whose own cost is unknown stays unknown.
_ADD_SPEND = (
    update(turns)
    .where(turns.c.turn_id == bindparam("turn"))
    .values(
        tokens=turns.c.tokens + bindparam("more_tokens", type_=BigInteger()),
        cost_usd=turns.c.cost_usd + bindparam("more_usd", type_=Float()),
    )
)
_LAST_SEQ = select(func.max(spends.c.seq).label("seq")).where(spends.c.turn_id == bindparam("turn"))


class Spends:
    """The `spends` table."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._rows = ManyRows(spends, database)

    def write(self, connection: Transaction, turn_id: str, used: Sequence[Spend]) -> None:
        """Effect: store the turn's model calls in their order. Existing ones stay unchanged."""
        self._rows.insert(
            connection, [{"turn_id": turn_id, "seq": seq, **vars(spend)} for seq, spend in enumerate(used, 1)]
        )

    def add(self, connection: Transaction, turn_id: str, used: Sequence[Spend]) -> None:
        """Effect: store model calls made after the turn's result, and add them to the turn's figures.

        The turn's row is written first, so that a concurrent writer waits for it and numbers its calls after these.
        """
        if not used:
            return
        usd = sum(spend.cost_usd or 0.0 for spend in used)
        tokens = sum(spend.usage.total for spend in used)
        connection.write(_ADD_SPEND, {"turn": turn_id, "more_tokens": tokens, "more_usd": usd})
        last = connection.first(_LAST_SEQ, {"turn": turn_id})
        begin = 1 + (0 if last is None else last["seq"] or 0)
        rows = [{"turn_id": turn_id, "seq": seq, **vars(spend)} for seq, spend in enumerate(used, begin)]
        self._rows.insert(connection, rows)

    def of_turn(self, turn_id: str) -> list[Spend]:
        """Return the model calls in their order, with those after the result last. It is empty before the finalizer's
        `log` step."""
        return [Spend.model_validate(dict(found)) for found in self._db.all(_SPENDS_OF_TURN, {"turn": turn_id})]


_INSERT_DECISION = insert_or_ignore(decisions)
_GET_DECISION = select(decisions).where(decisions.c.turn_id == bindparam("turn"))


class Decisions:
    """The `decisions` table."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._insert = database.pick(_INSERT_DECISION)

    def write(self, connection: Transaction, record: RuntimeDecisionRecord) -> bool:
        """Effect: store the record. Returns False if the turn has one."""
        values: dict[str, object] = record.model_dump(mode="python", exclude={"usage"})
        values |= record.usage.model_dump(exclude={"estimated"})  # The spends have this value.
        values |= {
            "ending": record.ending.value,
            "stop_reason": record.stop_reason.value,
            "tools": [sql_text(name) for name in record.tools],
            "prompt_tags": [sql_text(tag) for tag in record.prompt_tags],
        }
        return connection.write(self._insert, values) == 1

    def get(self, turn_id: str) -> RuntimeDecisionRecord | None:
        found = self._db.first(_GET_DECISION, {"turn": turn_id})
        if found is None:
            return None
        values = {name: value for name, value in found.items() if name not in ("row", "created_at")}
        usage = {name: values.pop(name) for name in TokenUsage.model_fields if name in values}
        return RuntimeDecisionRecord.model_validate(values | {"usage": usage})


_STEP = finalizer_steps.c
_STEP_KEYS = ("turn_id", "step")
_STEP_DONE = upsert(
    finalizer_steps,
    _STEP_KEYS,
    copied=("state", "error", "step_key"),
    changed={"tries": _STEP.tries + 1, "updated_at": utc_now()},
    where=_STEP.state != "done",
)
_STEP_FAILED = upsert(
    finalizer_steps,
    _STEP_KEYS,
    copied=("state", "error", "step_key", "tries"),
    changed={"updated_at": utc_now()},
    where=_STEP.state != "done",
)
_STEPS_OF_TURN = (
    select(finalizer_steps).where(_STEP.turn_id == bindparam("turn")).order_by(_STEP.updated_at, _STEP.step)
)


class FinalizerSteps:
    """The `finalizer_steps` table."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._done = database.pick(_STEP_DONE)
        self._failed = database.pick(_STEP_FAILED)

    def run_once(self, turn_id: str, step: str, step_key: str, effect: Callable[[Transaction], object]) -> bool:
        """Mark the step as done and run `effect` in the same transaction. Returns False without an effect if it was
        done.

        An error in `effect` undoes both. `effect` may only use methods that take the connection.
        """
        with self._db.transaction() as connection:
            if not self.write_done(connection, turn_id, step, step_key):
                return False
            effect(connection)
            return True

    def write_done(self, connection: Transaction, turn_id: str, step: str, step_key: str) -> bool:
        """Mark the step as done within a transaction. Returns False if it was done."""
        values = {"turn_id": turn_id, "step": step, "state": "done", "tries": 1, "step_key": step_key, "error": None}
        return connection.write(self._done, values) == 1

    def note_failure(self, turn_id: str, step: str, error: str, tries: int, *, dead: bool) -> bool:
        """Record a failed try (`dead` for the last one). Returns False if the step was done meanwhile."""
        with self._db.transaction() as connection:
            return self.write_failure(connection, turn_id, step, error, tries, dead=dead)

    def write_failure(
        self, connection: Transaction, turn_id: str, step: str, error: str, tries: int, *, dead: bool
    ) -> bool:
        """Record a failed try within a transaction. See `note_failure`."""
        values = {
            "turn_id": turn_id,
            "step": step,
            "state": "dead" if dead else "failed",
            "tries": tries,
            "step_key": f"{turn_id}:{step}",
            "error": error,
        }
        return connection.write(self._failed, values) == 1

    def of_turn(self, turn_id: str) -> list[StepRow]:
        """Return the turn's steps that were tried, in the order of their last change."""
        return [StepRow(**found) for found in self._db.all(_STEPS_OF_TURN, {"turn": turn_id})]


def _count_in_state(table: Table, state: str) -> ColumnElement[int]:
    # A literal: only so the partial index is used.
    is_so = table.c.state == literal_column(f"'{state}'")
    return select(func.count()).select_from(table).where(is_so).scalar_subquery()


_COUNTS = select(
    _count_in_state(finalizer_steps, "dead").label("finalizer_steps"),
    _count_in_state(judgements, "dead").label("judgements"),
    _count_in_state(deliveries, "dead").label("deliveries"),
    _count_in_state(approvals, "pending").label("approvals"),
)


def count_given_up(database: Database) -> tuple[GivenUp, int]:
    """Count dead finalizer steps, judgements and deliveries, and pending approvals."""
    found = {name: int(number) for name, number in (database.first(_COUNTS, {}) or {}).items()}
    approvals = found.pop("approvals", 0)
    return GivenUp(**found), approvals
