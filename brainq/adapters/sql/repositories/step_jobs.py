"""Step jobs: finalizer steps that are tried outside their turn's chain."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Integer, and_, bindparam, delete, literal_column, select

from brainq.adapters.sql.database import Database, Transaction
from brainq.adapters.sql.jobs import AFTER, JobTable
from brainq.adapters.sql.prepared import Record
from brainq.adapters.sql.repositories.turn_records import FinalizerSteps
from brainq.adapters.sql.statements import insert_or_ignore
from brainq.adapters.sql.tables.job_tables import JOB_TABLES, step_jobs
from brainq.adapters.sql.tables.types import utc_now
from brainq.contracts.claim import FinalStepClaim
from brainq.engine.jobs import JobKey, JobLost, job_key

SETTLE_S = 10.0  # between the commit of a step's effect and the end of its job
_S = step_jobs.c
_OPEN = insert_or_ignore(step_jobs, fixed={"due_at": AFTER, "state": literal_column("'pending'")})
_OF_TURN = select(_S.step).where(_S.turn_id == bindparam("turn"))
_REMOVE = delete(step_jobs).where(and_(_S.turn_id == bindparam("turn"), _S.step == bindparam("by")))
_REMOVE_TRY = _REMOVE.where(_S.tries == bindparam("nth", type_=Integer()))


class StepJobs(JobTable):
    """The `step_jobs` table. How each try ended is in `finalizer_steps`, written in the same transaction."""

    def __init__(self, database: Database, steps: FinalizerSteps) -> None:
        columns = (_S.lost, _S.created_at, utc_now().label("now"))
        super().__init__(database, step_jobs, {"turn": "turn_id", "by": "step"}, *columns)
        self._steps = steps
        self._open = database.pick(_OPEN)

    @property
    def is_there(self) -> bool:
        """Return whether the table exists. It is created when a step first becomes a job."""
        return JOB_TABLES.has(self._db.engine, step_jobs)

    def open(self, claim: FinalStepClaim, tries: int, *, due_s: float, error: str | None = None) -> None:
        """Make a job of a step that its chain continues without.

        tries   that were made and have ended
        due_s   when it may be tried: at once, after a wait, or, if a try is under way, after its lease
        error   why the last try failed; None if no try failed
        """
        JOB_TABLES.make(self._db.engine)
        values = {"turn_id": claim.turn_id, "step": claim.step, "session_id": claim.session_id}
        with self._db.transaction() as connection:
            if error is not None:
                self._steps.write_failure(connection, claim.turn_id, claim.step, error, tries, dead=False)
            connection.write(self._open, {**values, "tries": tries, "lost": claim.lost, "seconds": due_s})

    def take(self, key: JobKey, lease_s: float) -> Record | None:
        """See `JobTable`. `lost` counts the tries, with this one, that have not ended; `now` is the database's."""
        return super().take(key, lease_s) if self.is_there else None

    def due(self, older_than_s: float, limit: int) -> list[tuple[str, ...]]:
        """See `JobTable`."""
        return super().due(older_than_s, limit) if self.is_there else []

    def steps_of(self, turn_id: str) -> Sequence[str]:
        """Return the steps of the turn that have jobs."""
        return [found["step"] for found in self._db.all(_OF_TURN, {"turn": turn_id})] if self.is_there else ()

    def fail(self, key: JobKey, tries: int, error: str, again_after_s: float | None) -> bool:
        """See `JobTable`. A dead step has no job any more; its row in `finalizer_steps` shows that."""
        dead = again_after_s is None
        values = {**key, "nth": tries} if dead else {**key, "nth": tries, "seconds": again_after_s}
        with self._db.transaction() as connection:
            if connection.write(_REMOVE_TRY if dead else self._end_try, values) == 0:
                return False
            self._steps.write_failure(connection, str(key["turn"]), str(key["by"]), error, tries, dead=dead)
            return True

    def require_held(self, connection: Transaction, claim: FinalStepClaim) -> None:
        """Effect: keep the job until the transaction ends. Raises JobLost if it is gone, or a later try has it."""
        values = {**job_key(claim.turn_id, claim.step), "nth": claim.tries, "seconds": SETTLE_S}
        if connection.write(self._hold, values) == 0:
            raise JobLost(f"the job of step {claim.step!r} was removed, or a later try has it")

    def remove(self, key: JobKey) -> None:
        """End the job: its step is done, or there is nothing left to do."""
        if self.is_there:
            self._db.put(_REMOVE, key)
