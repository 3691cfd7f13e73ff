"""Finalizer steps: what a step writes to SQL happens once, because it commits with the step's own row."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import bindparam, select

from brainq.contracts.rows import StepRow
from brainq.store.database import Database, Transaction
from brainq.store.statements import upsert
from brainq.store.tables import finalizer_steps
from brainq.store.tables.types import utc_now

_S = finalizer_steps.c
_KEYS = ("turn_id", "step")
_DONE = upsert(
    finalizer_steps,
    _KEYS,
    copied=("state", "error", "step_key"),
    changed={"tries": _S.tries + 1, "updated_at": utc_now()},
    where=_S.state != "done",
)
_FAILED = upsert(
    finalizer_steps,
    _KEYS,
    copied=("state", "error", "step_key", "tries"),
    changed={"updated_at": utc_now()},
    where=_S.state != "done",
)
_OF = select(finalizer_steps).where(_S.turn_id == bindparam("turn")).order_by(_S.updated_at, _S.step)


class Steps:
    """The `finalizer_steps` table."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._done = database.pick(_DONE)
        self._failed = database.pick(_FAILED)

    def run_once(self, turn_id: str, step: str, step_key: str, effect: Callable[[Transaction], None]) -> bool:
        """Mark the step done and run `effect` in the same transaction; False, and no effect, if it was done.

        What `effect` raises undoes both. It may only use effects that take the connection.
        """
        values = {
            "turn_id": turn_id,
            "step": step,
            "state": "done",
            "tries": 1,
            "step_key": step_key,
            "error": None,
        }
        with self._db.transaction() as connection:
            if connection.write(self._done, values) == 0:
                return False
            effect(connection)
            return True

    def note_failure(
        self, turn_id: str, step: str, step_key: str, error: str, tries: int, dead: bool
    ) -> bool:
        """Write down a failed try (`dead`: the last one); False if the step was done meanwhile."""
        values = {
            "turn_id": turn_id,
            "step": step,
            "state": "dead" if dead else "failed",
            "tries": tries,
            "step_key": step_key,
            "error": error,
        }
        return self._db.write(self._failed, values) == 1

    def of(self, turn_id: str) -> list[StepRow]:
        """The turn's steps that were tried, in the order of their last change."""
        return [StepRow(**found) for found in self._db.all(_OF, {"turn": turn_id})]
