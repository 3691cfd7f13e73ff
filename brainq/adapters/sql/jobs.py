"""Tables of jobs, on the database's own clock: claimed, held, tried again and revived by the same statements.

A table of jobs has the columns `state` (pending, done, dead), `tries`, `due_at`, `updated_at` and `error`. Nobody may
take a row before `due_at`: a claim sets that to the end of the lease, a failure to the time of the next try.

`judgements` and `deliveries` were such tables before they shared this class. Their columns and what these mean are
unchanged, so workers of a build without it claim the same rows, and each row is one process's at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, Executable, Float, Table, and_, bindparam, literal_column, select, update

from brainq.adapters.sql.database import Database
from brainq.adapters.sql.prepared import Record
from brainq.adapters.sql.tables.types import utc_after, utc_now
from brainq.engine.jobs import JobKey

AFTER = utc_after(bindparam("seconds", type_=Float()))


class JobTable:
    """The jobs of one table.

    keys     the columns that identify a row, by the names that a JobKey has for them
    columns  what a claim returns of the row beside its number of tries
    """

    def __init__(self, database: Database, table: Table, keys: Mapping[str, str], *columns: ColumnElement[Any]) -> None:
        self._db = database
        self._table = table
        self._here = and_(*(table.c[column] == bindparam(name) for name, column in keys.items()))
        pending = table.c.state == literal_column("'pending'")  # a literal: only then is the partial index used
        self._pending_here = and_(self._here, pending)
        is_due = table.c.due_at <= utc_now()
        lost = table.c.get("lost")  # counts the tries that are under way, or never ended
        of_try = (self._pending_here, table.c.tries == bindparam("nth"))
        touched = {"due_at": AFTER, "updated_at": utc_now()}
        counted = {"tries": table.c.tries + 1} if lost is None else {"tries": table.c.tries + 1, "lost": lost + 1}
        self._claim = (
            update(table).where(self._pending_here, is_due).values(touched | counted).returning(table.c.tries, *columns)
        )
        self._hold = update(table).where(*of_try).values(touched)
        self._end_try = self._hold if lost is None else self._hold.values(lost=lost - 1)
        again = {"state": "pending", "tries": 0, "due_at": utc_now(), "updated_at": utc_now()}
        self._revive_all = update(table).where(table.c.state == literal_column("'dead'")).values(again)
        self._revive = self._revive_all.where(self._here)
        self._due = (
            select(*(table.c[column] for column in ("session_id", *keys.values())))
            .where(pending, table.c.due_at <= AFTER)
            .order_by(table.c.due_at)
            .limit(bindparam("most"))
        )

    def take(self, key: JobKey, lease_s: float) -> Record | None:
        """Claim a job for `lease_s`. Returns its `tries`, counted from 1, and the columns that were asked for; None if
        it is taken, settled, dead, unknown or not due. One statement: of several at once, one gets the job."""
        return self._db.write_returning(self._claim, {**key, "seconds": lease_s})

    def hold(self, key: JobKey, tries: int, lease_s: float) -> bool:
        """Renew the lease of try number `tries`. Returns False if a later try has the job, or it is settled."""
        return self._db.put(self._hold, {**key, "nth": tries, "seconds": lease_s}) == 1

    def fail(self, key: JobKey, tries: int, error: str, again_after_s: float | None) -> bool:
        """Record a failed try: the job is due again after `again_after_s`, or dead if that is None."""
        state = "dead" if again_after_s is None else "pending"
        values = {"state": state, "error": error, "seconds": again_after_s or 0.0}
        return self._db.write(self._end_try, {**key, **values, "nth": tries}) == 1

    def postpone(self, key: JobKey, tries: int, why: str, again_after_s: float) -> bool:
        """Take back a try that was not made: the job is due again after `again_after_s`."""
        values = {"tries": tries - 1, "error": why, "seconds": again_after_s}
        return self._db.write(self._end_try, {**key, **values, "nth": tries}) == 1

    def revive_job(self, key: JobKey) -> bool:
        """Make a dead job due, its tries counted anew. Returns False if it is not dead."""
        return self._db.write(self._revive, key) == 1

    def revive_all(self) -> int:
        """Revive every dead job. Returns how many there were."""
        return self._db.write(self._revive_all, {})

    def due(self, older_than_s: float, limit: int) -> list[tuple[str, ...]]:
        """Return the session and the key of jobs that nobody holds and that have been due for this long, the longest
        first."""
        found = self._db.all(self._due, {"seconds": -older_than_s, "most": limit})
        return [tuple(map(str, row.values())) for row in found]

    def settling(self, values: Mapping[str, Any]) -> Executable:
        """Return the statement that settles a pending job, whichever try has it: the first end of a job is its end."""
        return update(self._table).where(self._pending_here).values(updated_at=utc_now(), **values)
