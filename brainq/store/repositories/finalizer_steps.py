"""Finalizer steps: what a step writes to SQL happens once, because it commits with the step's own row; and how
much was given up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Table, bindparam, func, literal_column, select

from brainq.contracts.rows import StepRow
from brainq.store.database import Database, Transaction
from brainq.store.statements import upsert
from brainq.store.tables import approvals, deliveries, finalizer_steps, judgements
from brainq.store.tables.types import utc_now

# Finalizer steps: what a step writes to SQL happens once, because it commits with the step's own row.

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

    def run_once(self, turn_id: str, step: str, step_key: str, effect: Callable[[Transaction], None]) -> bool:
        """Mark the step done and run `effect` in the same transaction; False, and no effect, if it was done.

        What `effect` raises undoes both. It may only use effects that take the connection.
        """
        values = {"turn_id": turn_id, "step": step, "state": "done", "tries": 1, "step_key": step_key, "error": None}
        with self._db.transaction() as connection:
            if connection.write(self._done, values) == 0:
                return False
            effect(connection)
            return True

    def note_failure(self, turn_id: str, step: str, step_key: str, error: str, tries: int, dead: bool) -> bool:
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

    def of_turn(self, turn_id: str) -> list[StepRow]:
        """The turn's steps that were tried, in the order of their last change."""
        return [StepRow(**found) for found in self._db.all(_STEPS_OF_TURN, {"turn": turn_id})]


# How much was given up, and how much waits for people: counts that read nothing else.


def _count_in_state(table: Table, state: str) -> ColumnElement[int]:
    # A literal: only so the partial index is used.
    is_so = table.c.state == literal_column(f"'{state}'")
    return select(func.count()).select_from(table).where(is_so).scalar_subquery()


_GIVEN_UP_COUNTS = select(
    _count_in_state(finalizer_steps, "dead").label("finalizer_steps"),
    _count_in_state(judgements, "dead").label("judgements"),
    _count_in_state(deliveries, "dead").label("deliveries"),
    _count_in_state(approvals, "pending").label("approvals"),
)


@dataclass(frozen=True, slots=True)
class GivenUpCounts:
    """Finalizer steps, judgements and deliveries that are dead; approvals that are pending."""

    finalizer_steps: int
    judgements: int
    deliveries: int
    approvals: int


def count_given_up(database: Database) -> GivenUpCounts:
    found = database.first(_GIVEN_UP_COUNTS, {}) or {}
    return GivenUpCounts(**{name: int(number) for name, number in found.items()})
