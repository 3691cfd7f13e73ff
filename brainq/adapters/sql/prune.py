"""Retention: delete old turns with all their rows, old readiness flags, finished schedules, acts and budget windows.

Some rows are kept whatever their age:
- turns that have not ended;
- turns with pending work (a finalizer step that will be retried or has not run yet, a pending judgement or delivery),
  unless nothing has happened to it for a week;
- turns with an accepted input that no step has consumed, because the sweeper will make it a turn;
- memories and observations, which are knowledge rather than logs.

Sessions continue to count their turns. Files are deleted with the last turn that has them; files of submits that never
became a turn, after a week. On SQLite the newest turn is kept, because SQLite would give a deleted last row's number to
the next row, and rows are identified and ordered by their numbers.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from sqlalchemy import (
    ColumnElement,
    Float,
    Table,
    and_,
    bindparam,
    case,
    delete,
    distinct,
    exists,
    func,
    literal_column,
    select,
    tuple_,
    update,
)

from brainq.adapters.sql.database import Database, Transaction
from brainq.adapters.sql.prepared import Record
from brainq.adapters.sql.repositories.blobs import unlink
from brainq.adapters.sql.repositories.session_log import TURN_NUMBER
from brainq.adapters.sql.statements import upsert
from brainq.adapters.sql.store import Store
from brainq.adapters.sql.tables import (
    attachments,
    blobs,
    brakes,
    decisions,
    deliveries,
    finalizer_steps,
    inputs,
    judgements,
    messages,
    pruned_sessions,
    schedules,
    turns,
)
from brainq.adapters.sql.tables.budget_tables import BUDGET_TABLES, budget_leases, budget_windows
from brainq.adapters.sql.tables.job_tables import JOB_TABLES, step_jobs
from brainq.adapters.sql.tables.operator_tables import OPERATOR_TABLES, acts
from brainq.adapters.sql.tables.tenant_tables import KNOWLEDGE, OF_TURNS
from brainq.adapters.sql.tables.types import greater_of, ms_after, utc_after

BATCH = 200  # turns in one transaction: some 20 ms, so submits and finalizers barely wait
UNFINISHED_S = 7 * 86_400.0
MANY = 25  # batches in one statement for tables without row numbers, which are scanned each time
LONGEST_REST_S = 0.2
LONGEST_WINDOW_S = 32 * 86_400.0
PrunedRows = Mapping[str, int]
"""Rows by table."""
_T = turns.c
_CUT = utc_after(bindparam("ago", type_=Float()))
_STALE = utc_after(bindparam("stale", type_=Float()))
_WORKED_AT = (
    exists().where(
        finalizer_steps.c.turn_id == _T.turn_id,
        finalizer_steps.c.state == "failed",
        finalizer_steps.c.updated_at > _STALE,
    )
    | exists().where(
        judgements.c.turn_id == _T.turn_id, judgements.c.state == "pending", judgements.c.updated_at > _STALE
    )
    | exists().where(
        deliveries.c.turn_id == _T.turn_id, deliveries.c.state == "pending", deliveries.c.updated_at > _STALE
    )
)
_OF_NO_TURN = and_(deliveries.c.turn_id == "", deliveries.c.state != "pending", deliveries.c.updated_at < _CUT)
_OWES = exists().where(inputs.c.turn_id == _T.turn_id, inputs.c.state == "accepted")
# The last row that the steps themselves write is the decision. Until it is written or given up, steps are still to run.
_UNFINISHED = and_(
    _T.state != "rejected",
    ~exists().where(decisions.c.turn_id == _T.turn_id),
    ~exists().where(
        finalizer_steps.c.turn_id == _T.turn_id,
        finalizer_steps.c.step == "decision",
        finalizer_steps.c.state.in_(("dead", "done")),
    ),
    (_T.ended_at > _STALE)
    | exists().where(finalizer_steps.c.turn_id == _T.turn_id, finalizer_steps.c.updated_at > _STALE),
)
_OVER = and_(_T.ended_at.is_not(None), _T.ended_at < _CUT, ~_WORKED_AT, ~_UNFINISHED, ~_OWES)
# Rows are in the order of acceptance, so the walk ends at a page that was accepted after the cut-off.
_PAGE = (
    select(
        _T.row,
        _T.turn_id,
        case((_OVER, 1), else_=0).label("over"),
        case((_T.accepted_at > _CUT, 1), else_=0).label("recent"),
    )
    .where(_T.row > bindparam("after"))
    .order_by(_T.row)
    .limit(bindparam("limit"))
)
_NEWEST = select(_T.turn_id).order_by(_T.row.desc()).limit(1)
_NEWEST_SAID = select(messages.c.turn_id).order_by(messages.c.row.desc()).limit(1)
_THESE = bindparam("turns", expanding=True)
_STILL = select(_T.row, _T.turn_id, _T.session_id, _T.turn_number, _T.state).where(_T.turn_id.in_(_THESE), _OVER)
# A flag that was released before a turn took it belongs to no turn.
_RELEASED = and_(brakes.c.turn_id.is_(None), brakes.c.over_at < _CUT)
# Schedules that ran once.
_RAN_OUT = and_(schedules.c.next_ms.is_(None), schedules.c.last_due_ms < ms_after(bindparam("ago", type_=Float())))
_ACT_OLD = acts.c.at < _CUT
_WINDOW_END = ms_after(bindparam("ago", type_=Float()) - LONGEST_WINDOW_S)
# Tables that are created when they are first needed, so they may be missing.
_ON_DEMAND = (
    (OPERATOR_TABLES, acts, _ACT_OLD),
    (BUDGET_TABLES, budget_windows, budget_windows.c.start_ms < _WINDOW_END),
    (BUDGET_TABLES, budget_leases, budget_leases.c.start_ms < _WINDOW_END),
    (JOB_TABLES, step_jobs, ~exists().where(_T.turn_id == step_jobs.c.turn_id)),
)
# The blobs that no other turn has.
_others = attachments.alias()
_ONLY_THEIRS = select(func.count(distinct(attachments.c.sha256)).label("files")).where(
    attachments.c.turn_id.in_(_THESE),
    ~exists().where(_others.c.sha256 == attachments.c.sha256, _others.c.turn_id.not_in(_THESE)),
)
# Files of a submit that was refused, or that turned out to be an existing turn.
_NO_TURNS = (
    select(attachments.c.turn_id)
    .where(attachments.c.created_at < _STALE, ~exists().where(_T.turn_id == attachments.c.turn_id))
    .distinct()
    .limit(BATCH)
)
_NUMBER = (
    update(turns)
    .where(
        _T.session_id.in_(bindparam("sessions", expanding=True)),
        _T.ended_at.is_(None),
        _T.turn_number.is_(None),
        _T.row < bindparam("newest"),
    )
    .values(turn_number=TURN_NUMBER)
)
# The newest pruned turn of each session. A newer one that was noted before stays.
_MARK = upsert(
    pruned_sessions,
    ["session_id"],
    copied=(),
    changed={
        name: greater_of(pruned_sessions.c[name], literal_column(f"excluded.{name}"))
        for name in ("turn_row", "turn_number")
    },
)


def prune(
    store: Store,
    older_than_s: float,
    *,
    knowledge: bool = False,
    dry_run: bool = False,
    on_progress: Callable[[PrunedRows], None] = lambda _: None,
) -> PrunedRows:
    """Delete turns that ended, or were rejected, more than `older_than_s` ago. Returns the deleted rows by table.

    It runs in short transactions of 200 turns, oldest first, so an interrupted run continues where it stopped.

    knowledge     also delete memories and observations that were not updated since then
    dry_run       count, and delete nothing
    on_progress   called with the counts so far after each transaction
    """
    return _Pruner(store.database, older_than_s, dry_run, on_progress).run(knowledge)


class _Pruner:
    def __init__(
        self, database: Database, older_than_s: float, dry_run: bool, on_progress: Callable[[PrunedRows], None]
    ) -> None:
        self._db = database
        self._ages = {"ago": -older_than_s, "stale": -UNFINISHED_S}
        self._dry_run = dry_run
        self._on_progress = on_progress
        self._counts: Counter[str] = Counter()
        self._mark = database.pick(_MARK)

    def run(self, knowledge: bool) -> PrunedRows:
        self._counts.update({table.name: 0 for table in (turns, *OF_TURNS, blobs)})
        last = self._last() if self._db.dialect == "sqlite" else set[str]()
        after = 0
        while page := self._db.all(_PAGE, {**self._ages, "after": after, "limit": BATCH}):
            over = [str(row["turn_id"]) for row in page if row["over"] and row["turn_id"] not in last]
            if over:
                self._batch(over)
            if all(row["recent"] for row in page):
                break
            after = page[-1]["row"]
        self._forget(brakes, _RELEASED)
        self._forget(schedules, _RAN_OUT)
        self._forget(deliveries, _OF_NO_TURN)
        self._forget_unsubmitted()
        if knowledge:
            for table in KNOWLEDGE:
                self._forget(table, table.c.updated_at < _CUT)
        for tables, table, old in _ON_DEMAND:
            if tables.has(self._db.engine, table):
                self._forget(table, old)
                if not self._counts[table.name]:
                    del self._counts[table.name]
        return dict(self._counts)

    def _last(self) -> set[str]:
        found = (self._db.first(statement, {}) for statement in (_NEWEST, _NEWEST_SAID))
        return {str(row["turn_id"]) for row in found if row is not None}

    def _batch(self, turn_ids: Sequence[str]) -> None:
        if self._dry_run:
            self._counts["turns"] += len(turn_ids)
            for table in OF_TURNS:
                self._counts[table.name] += self._db.count(table, table.c.turn_id.in_(_THESE), {"turns": turn_ids})
            self._counts["blobs"] += (self._db.first(_ONLY_THEIRS, {"turns": turn_ids}) or {"files": 0})["files"]
        else:
            began = time.monotonic()
            with self._db.transaction() as connection:
                self._delete(connection, turn_ids)
            self._rest(time.monotonic() - began)
        self._on_progress(dict(self._counts))

    def _rest(self, took_s: float) -> None:
        """Pause for as long as the batch took, because other processes that wait for the one writer of a SQLite file
        poll only now and then."""
        if self._db.dialect == "sqlite":
            time.sleep(min(took_s, LONGEST_REST_S))

    def _delete(self, connection: Transaction, turn_ids: Sequence[str]) -> None:
        # Check again inside the transaction: a dead judgement may just have been revived.
        rows = connection.all(_STILL, {**self._ages, "turns": turn_ids})
        gone = [row["turn_id"] for row in rows]
        newest = _newest_numbered(rows)
        if newest:
            sessions = {"sessions": sorted(newest), "newest": max(row["row"] for row in newest.values())}
            connection.write(_NUMBER, sessions)
            marks = [
                {"session_id": session, "turn_row": row["row"], "turn_number": row["turn_number"]}
                for session, row in sorted(newest.items())
            ]
            connection.write_many(self._mark, marks)
        self._unlink(connection, gone)
        for table in (*OF_TURNS, turns):
            statement = delete(table).where(table.c.turn_id.in_(_THESE))
            self._counts[table.name] += connection.write(statement, {"turns": gone})

    def _unlink(self, connection: Transaction, turn_ids: Sequence[str]) -> None:
        """Unlink these turns' files, and delete those that no other turn has."""
        links, files = unlink(connection, turn_ids)
        self._counts.update(attachments=links, blobs=files)

    def _forget_unsubmitted(self) -> None:
        if self._dry_run:
            return
        while found := self._db.all(_NO_TURNS, {"stale": self._ages["stale"]}):
            with self._db.transaction() as connection:
                self._unlink(connection, [row["turn_id"] for row in found])

    def _forget(self, table: Table, old: ColumnElement[bool]) -> None:
        """Delete old rows in batches, because a row may also have to leave a full-text index."""
        if self._dry_run:
            self._counts[table.name] += self._db.count(table, old, {"ago": self._ages["ago"]})
            return
        key = table.c.row if "row" in table.c else tuple_(*table.primary_key)
        some = select(*table.primary_key).where(old).limit(BATCH if "row" in table.c else BATCH * MANY)
        statement = delete(table).where(key.in_(some), old)
        self._counts[table.name] += 0
        began = time.monotonic()
        while deleted := self._db.write(statement, {"ago": self._ages["ago"]}):
            self._counts[table.name] += deleted
            self._rest(time.monotonic() - began)
            self._on_progress(dict(self._counts))
            began = time.monotonic()


def _newest_numbered(rows: Sequence[Record]) -> dict[str, Record]:
    """Return the newest numbered turn of each session. Rejected turns have no number."""
    newest: dict[str, Record] = {}
    for row in sorted(rows, key=lambda row: row["row"]):
        if row["turn_number"] is not None:
            newest[row["session_id"]] = row
    return newest
